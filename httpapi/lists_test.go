package httpapi

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// lists are functions that say late what their answer is, or fail late.
const lists = `{
	"views": {"v": {"map": "function (doc) { emit(doc._id, 1); }"}},
	"lists": {
		"plain": "function (head, req) { send(req.method); while (getRow()) {} }",
		"late": "function () { getRow(); getRow(); start({code: 418, headers: {'X-Own': 'late', 'Content-Type': 'text/tea'}}); send('tea'); }",
		"twice": "function () { start({code: 201, headers: {'X-First': 'yes'}}); getRow(); start({headers: {'X-Own': 'second'}}); getRow(); send('body'); }",
		"last": "function () { while (getRow()) {} start({code: 404}); return 'no more'; }",
		"sent": "function () { getRow(); send('text'); getRow(); start({code: 418, headers: {'X-Own': 'too late'}}); send(' and more'); }",
		"fails": "function () { while (getRow()) { send('row '); } throw {error: 'broken', reason: 'late'}; }",
		"silent": "function () { getRow(); throw {error: 'broken', reason: 'soon'}; }"},
	"shows": {"s": "function (doc, req) { return req.method; }"},
	"updates": {"u": "function (doc, req) { return [null, req.method]; }"}}`

func listSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/a", `{}`)
	s.text(201, "PUT", "/db/b", `{}`)
	s.text(201, "PUT", "/db/_design/l", lists)
	return s
}

// TestOptionsOfFunctions: OPTIONS runs functions as GET does; of a list, no other
// method that it does not know.
func TestOptionsOfFunctions(t *testing.T) {
	s := listSite(t)
	for path, want := range map[string]string{"_list/plain/v": "OPTIONS", "_list/plain/l/v": "OPTIONS", "_show/s": "OPTIONS", "_show/s/a": "OPTIONS", "_update/u/a": "OPTIONS"} {
		if got := s.text(200, "OPTIONS", "/db/_design/l/"+path, nil); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	s.text(404, "OPTIONS", "/db/_design/l/_list/nope/v", nil)
	s.text(405, "DELETE", "/db/_design/l/_list/plain/v", nil)
	s.text(405, "OPTIONS", "/db/_design/l/_view/v", nil)
}

// TestStartOfLists: what start says counts until text was sent.
func TestStartOfLists(t *testing.T) {
	s := listSite(t)
	for name, want := range map[string]struct {
		status           int
		own, first, body string
	}{
		"late":  {418, "late", "", "tea"},
		"twice": {200, "second", "", "body"},
		"last":  {404, "", "", "no more"},
		"sent":  {200, "", "", "text and more"},
	} {
		res := s.do("GET", "/db/_design/l/_list/"+name+"/v", nil)
		text, err := io.ReadAll(res.Body)
		apitest.Must(t, err)
		body := string(text)
		if h := res.Header; res.StatusCode != want.status || h.Get("X-Own") != want.own || h.Get("X-First") != want.first || body != want.body || h.Get("Server") == "" {
			t.Errorf("%s: %d %v %q", name, res.StatusCode, h, body)
		}
	}
	if res := s.do("GET", "/db/_design/l/_list/late/v", nil); res.Header.Get("Content-Type") != "text/tea" {
		t.Errorf("%v", res.Header)
	}
}

// TestListThatFailsLate: an error behind what was sent is told in the body, one before
// it by the status.
func TestListThatFailsLate(t *testing.T) {
	s := listSite(t)
	got := s.text(200, "GET", "/db/_design/l/_list/fails/v", nil)
	if !strings.HasPrefix(got, "row row \n\n{\"error\":\"broken\",\"reason\":\"late\"") {
		t.Errorf("behind the rows: %q", got)
	}
	if got := s.text(http.StatusInternalServerError, "GET", "/db/_design/l/_list/fails/v?buffer_response=true", nil); !strings.HasPrefix(got, `{"error":"broken","reason":"late"`) {
		t.Errorf("of an answer that is kept to its end: %q", got)
	}
	if got := s.text(http.StatusInternalServerError, "GET", "/db/_design/l/_list/silent/v", nil); !strings.HasPrefix(got, `{"error":"broken","reason":"soon"`) {
		t.Errorf("before anything was sent: %q", got)
	}
}

// TestUnknownLanguage: functions in a language that does not run here are refused by
// its name, a validation on each write.
func TestUnknownLanguage(t *testing.T) {
	s := listSite(t)
	s.text(201, "PUT", "/db/_design/cobol", `{"language": "cobol", "validate_doc_update": "PROCEDURE DIVISION.", "shows": {"s": "STOP RUN."}}`)
	for range 2 {
		if got := s.text(500, "PUT", "/db/new", `{}`); !strings.HasPrefix(got, `{"error":"unknown_query_language","reason":"cobol"`) {
			t.Errorf("a write: %s", got)
		}
	}
	if got := s.text(201, "POST", "/db/_bulk_docs", `{"docs": [{"_id": "new"}]}`); !strings.Contains(got, `"error":"unknown_query_language","reason":"cobol"`) {
		t.Errorf("a write of many: %s", got)
	}
	if got := s.text(500, "GET", "/db/_design/cobol/_show/s", nil); !strings.HasPrefix(got, `{"error":"unknown_query_language","reason":"cobol"`) {
		t.Errorf("a show: %s", got)
	}
	s.text(200, "GET", "/db/_design/l/_show/s", nil)
}
