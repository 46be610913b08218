package httpapi

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// feed opens a feed and returns a reader of its lines, LF included.
func (s *site) feed(query string, headers ...string) (*http.Response, func() string) {
	s.t.Helper()
	res := s.do("GET", "/db/_changes?"+query, nil, headers...)
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%s: %d %s", query, res.StatusCode, text)
	}
	r := bufio.NewReader(res.Body)
	return res, func() string {
		line, err := r.ReadString('\n')
		if err != nil && line == "" {
			return err.Error()
		}
		return line
	}
}

// rest reads a feed to its end.
func rest(next func() string) string {
	var b strings.Builder
	for line := next(); line != io.EOF.Error(); line = next() {
		b.WriteString(line)
	}
	return b.String()
}

// withoutSeqs replaces the sequences of a text.
func withoutSeqs(text string) string {
	return regexp.MustCompile(`[0-9]+-[A-Za-z0-9_-]{16,}`).ReplaceAllString(text, "S")
}

func TestFeedBytes(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "POST", "/db/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"a","_rev":"1-aa"}]}`)
	s.text(201, "POST", "/db/_bulk_docs", `{"new_edits":false,"docs":[{"_id":"b","_rev":"2-bb","_deleted":true}]}`)
	const (
		a    = `{"seq":"S","id":"a","changes":[{"rev":"1-aa"}]}`
		b    = `{"seq":"S","id":"b","changes":[{"rev":"2-bb"}],"deleted":true}`
		done = `"last_seq":"S","pending":0}`
	)
	for query, want := range map[string][2]string{
		"":                                      {"application/json", "{\"results\":[\n" + a + ",\r\n" + b + "\n],\n" + done + "\n"},
		"feed=longpoll":                         {"application/json", "{\"results\":[\n" + a + ",\r\n" + b + "\n],\n" + done + "\n"},
		"feed=longpoll&since=now&timeout=1":     {"application/json", "{\"results\":[\n\n],\n" + done + "\n"},
		"feed=continuous&timeout=1":             {"application/json", a + "\r\n" + b + "\r\n{" + done + "\r\n"},
		"feed=live&timeout=1&since=now":         {"application/json", "\n{" + done + "\r\n"},
		"feed=continuous&limit=2":               {"application/json", a + "\r\n" + b + "\r\n{" + done + "\r\n"},
		"feed=eventsource&timeout=1":            {"text/event-stream", "data: " + a + "\nid: \"S\"\n\ndata: " + b + "\nid: \"S\"\n\n"},
		"feed=eventsource&timeout=1&since=now":  {"text/event-stream", "\n"},
		"filter=_doc_ids&doc_ids=%5B%22b%22%5D": {"application/json", "{\"results\":[\n" + b + "\n],\n\"last_seq\":\"S\",\"pending\":1}\n"},
		"filter=_design":                        {"application/json", "{\"results\":[\n\n],\n" + done + "\n"},
	} {
		// The order of rows of different shards is free.
		res, next := s.feed(query)
		got := withoutSeqs(rest(next))
		swapped := strings.NewReplacer(a, b, b, a).Replace(want[1])
		if got != want[1] && got != swapped || res.Header.Get("Content-Type") != want[0] {
			t.Errorf("%s: got %s %q\nwant %q", query, res.Header.Get("Content-Type"), got, want[1])
		}
	}
}

func TestSeqInterval(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=3", nil)
	for i := range 7 {
		s.text(201, "PUT", fmt.Sprintf("/db/d%d", i), "{}")
	}
	var answer struct {
		Results []struct {
			ID  string
			Seq *string
		}
		LastSeq string `json:"last_seq"`
	}
	apitest.Must(t, json.Unmarshal([]byte(s.text(200, "GET", "/db/_changes?seq_interval=3", nil)), &answer))
	seen := map[string]bool{}
	for i, row := range answer.Results {
		seen[row.ID] = true
		if (row.Seq != nil) != (i%3 == 0) {
			t.Errorf("row %d: sequence %v", i, row.Seq)
		}
		if row.Seq == nil {
			continue
		}
		// A client that goes on from a row with a sequence sees exactly the others.
		text := s.text(200, "GET", "/db/_changes?since="+*row.Seq, nil)
		for _, later := range answer.Results {
			if has := strings.Contains(text, `"id":"`+later.ID+`"`); has == seen[later.ID] {
				t.Errorf("since row %d: %s is there: %v", i, later.ID, has)
			}
		}
	}
	if len(answer.Results) != 7 || answer.LastSeq == "" {
		t.Errorf("%d rows, last sequence %q", len(answer.Results), answer.LastSeq)
	}
}

func TestHeartbeats(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	_, next := s.feed("feed=continuous&heartbeat=20&since=now")
	for range 3 {
		if line := next(); line != "\n" {
			t.Fatalf("heartbeat %q", line)
		}
	}
	s.text(201, "PUT", "/db/a?new_edits=false", `{"_rev":"1-aa"}`)
	line := next()
	for line == "\n" {
		line = next()
	}
	if got, want := withoutSeqs(line), `{"seq":"S","id":"a","changes":[{"rev":"1-aa"}]}`+"\r\n"; got != want {
		t.Errorf("row %q, want %q", got, want)
	}
	if line := next(); line != "\n" {
		t.Errorf("after the row: %q", line)
	}
	_, next = s.feed("feed=eventsource&heartbeat=20&since=now")
	for _, want := range []string{"\n", "event: heartbeat\n", "data: \n", "\n", "event: heartbeat\n"} {
		if line := next(); line != want {
			t.Errorf("eventsource: %q, want %q", line, want)
		}
	}
}

// TestHeartbeatsWhileFiltering reads past many changes that no filter passes:
// the client must hear something all the same.
func TestHeartbeatsWhileFiltering(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=1", nil)
	var docs strings.Builder
	const many = 30_000
	for i := range many {
		fmt.Fprintf(&docs, `,{"_id":"%06d"}`, i)
	}
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[`+docs.String()[1:]+`]}`)
	res, next := s.feed("feed=longpoll&filter=_design&heartbeat=1&timeout=100")
	if first := next(); first != "{\"results\":[\n" {
		t.Fatalf("first line %q", first)
	}
	if beat := next(); beat != "\n" {
		t.Fatalf("heartbeat %q", beat)
	}
	s.text(201, "PUT", "/db/_design/d", "{}")
	text := rest(next)
	if !strings.Contains(text, `"id":"_design/d"`) || !json.Valid([]byte("{\"results\":[\n"+text)) {
		t.Errorf("%d: %.300s", res.StatusCode, text)
	}
}

// TestHeartbeatsOfSlowFilter: a feed of any kind says something while one batch of a filter takes
// longer than the pause between heartbeats, and what it says is still what it has to be.
func TestHeartbeatsOfSlowFilter(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=1", nil)
	var docs strings.Builder
	for i := range 100 {
		fmt.Fprintf(&docs, `,{"_id":"%06d"}`, i)
	}
	s.text(201, "POST", "/db/_bulk_docs", `{"docs":[`+docs.String()[1:]+`]}`)
	s.text(201, "PUT", "/db/_design/f", `{"filters":{`+
		`"slow":"function (doc) { for (var t = Date.now(); Date.now() - t < 5;); return doc._id == '_design/f'; }",`+
		`"late":"function (doc) { for (var t = Date.now(); Date.now() - t < 5;); if (doc._id == '_design/f') throw({forbidden: 'no'}); return false; }"}}`)
	for feed, beat := range map[string]string{"normal": "\n", "longpoll": "\n", "continuous": "\n", "eventsource": "event: heartbeat\ndata: \n\n"} {
		text := s.text(200, "GET", "/db/_changes?filter=f/slow&heartbeat=20&limit=1&feed="+feed, nil)
		row := strings.Index(text, `"id":"_design/f"`)
		if row < 0 || strings.Count(text[:row], beat) < 3 {
			t.Errorf("%s: %q", feed, text)
		}
		if (feed == "normal" || feed == "longpoll") && !json.Valid([]byte(text)) {
			t.Errorf("%s: no JSON: %q", feed, text)
		}
	}
	text := s.text(200, "GET", "/db/_changes?filter=f/late&heartbeat=20", nil)
	if !strings.HasPrefix(text, "{\"results\":[\n\n") || !strings.HasSuffix(text, "}\n") || !strings.Contains(text, "\n\n{\"error\":\"") {
		t.Errorf("an error after heartbeats: %q", text)
	}
	if text := s.text(200, "GET", "/db/_changes?filter=f/slow&heartbeat=20&buffer_response=true", nil); !json.Valid([]byte(text)) {
		t.Errorf("kept to its end: %q", text)
	}
	if res := s.do("GET", "/db/_changes?filter=f/late&heartbeat=20&buffer_response=true", nil); res.StatusCode == http.StatusOK {
		t.Error("an answer that is kept to its end has lost the status of its error")
	}
}

// TestFeedsEnd checks that feeds end as they should, with their last sequence,
// when the database goes and when the server stops.
func TestFeedsEnd(t *testing.T) {
	for name, end := range map[string]func(s *site){
		"database deleted": func(s *site) { s.text(200, "DELETE", "/db", nil) },
		"server stops":     func(s *site) { s.api.Stop() },
	} {
		for _, feed := range []string{"continuous", "longpoll", "eventsource"} {
			t.Run(name+"/"+feed, func(t *testing.T) {
				s := newSite(t, nil)
				s.text(201, "PUT", "/db", nil)
				s.text(201, "PUT", "/db/a?new_edits=false", `{"_rev":"1-aa"}`)
				_, next := s.feed("since=now&heartbeat=60000&feed=" + feed)
				next() // the first byte: the feed is open
				end(s)
				text := withoutSeqs(rest(next))
				want := map[string]string{
					"continuous":  "{\"last_seq\":\"S\",\"pending\":0}\r\n",
					"longpoll":    "\n],\n\"last_seq\":\"S\",\"pending\":0}\n",
					"eventsource": "",
				}[feed]
				if text != want {
					t.Errorf("%q, want %q", text, want)
				}
			})
		}
	}
}

// TestFeedAfterStop answers what there is and does not wait.
func TestFeedAfterStop(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/a?new_edits=false", `{"_rev":"1-aa"}`)
	s.api.Stop()
	start := time.Now()
	_, next := s.feed("feed=continuous&heartbeat=60000")
	want := `{"seq":"S","id":"a","changes":[{"rev":"1-aa"}]}` + "\r\n" + `{"last_seq":"S","pending":0}` + "\r\n"
	if got := withoutSeqs(rest(next)); got != want || time.Since(start) > 30*time.Second {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFeedLeavesWithItsClient checks that a feed whose client hangs up ends:
// the goroutine check of the package fails otherwise.
func TestFeedLeavesWithItsClient(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	for _, query := range []string{"feed=continuous&heartbeat=5&since=now", "feed=longpoll&since=now"} {
		res, next := s.feed(query)
		next()
		apitest.Must(t, res.Body.Close())
	}
}

func TestChangesETag(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	etag := s.do("GET", "/db/_changes", nil).Header.Get("Etag")
	if etag == "" {
		t.Fatal("no ETag")
	}
	if res := s.do("GET", "/db/_changes", nil, "If-None-Match: "+etag); res.StatusCode != http.StatusNotModified {
		t.Errorf("nothing has changed: %d", res.StatusCode)
	}
	if res := s.do("GET", "/db/_changes?limit=1", nil, "If-None-Match: "+etag); res.StatusCode != http.StatusOK {
		t.Errorf("another request: %d", res.StatusCode)
	}
	s.text(201, "PUT", "/db/a", "{}")
	if res := s.do("GET", "/db/_changes", nil, "If-None-Match: "+etag); res.StatusCode != http.StatusOK {
		t.Errorf("something has changed: %d", res.StatusCode)
	}
	if res := s.do("HEAD", "/db/_changes?feed=continuous", nil); res.StatusCode != http.StatusOK {
		t.Errorf("HEAD of a feed that waits: %d", res.StatusCode)
	}
}

func TestFilterFunctions(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db?q=4", nil)
	s.text(201, "PUT", "/db/_design/d", `{"filters": {
		"f": "function (doc, req) { return doc.t == req.query.t; }",
		"leaves": "function (doc) { return doc.keep; }",
		"throws": "function (doc) { throw({forbidden: 'no'}); }"},
		"views": {"v": {"map": "function (doc) { if (doc.t == 'x') { emit(null); } }"}}}`)
	for i := range 300 {
		s.text(201, "PUT", fmt.Sprintf("/db/d%03d", i), fmt.Sprintf(`{"t":%q}`, []string{"x", "y", "z"}[i%3]))
	}
	for _, leaf := range []string{"1-a", "1-b", "1-c"} {
		s.text(201, "PUT", "/db/c?new_edits=false", fmt.Sprintf(`{"_rev":%q,"keep":%t}`, leaf, leaf != "1-b"))
	}
	rows := func(query string) int { return strings.Count(s.text(200, "GET", "/db/_changes?"+query, nil), `"id"`) }
	for query, want := range map[string]int{
		"filter=d/f&t=x": 100, "filter=d/f&t=none": 0, "filter=d/f&t=y&limit=7": 7, "filter=d/f&t=x&descending=true": 100,
		"filter=_view&view=d/v": 100, "filter=_view&view=d/v&include_docs=true&limit=200": 100,
	} {
		if got := rows(query); got != want {
			t.Errorf("%s: %d rows, want %d", query, got, want)
		}
	}
	all := s.text(200, "GET", "/db/_changes?filter=d/leaves&style=all_docs", nil)
	if !strings.Contains(all, `"changes":[{"rev":"1-c"},{"rev":"1-a"}]`) {
		t.Errorf("the leaves that pass: %s", all)
	}
	if text := s.text(500, "GET", "/db/_changes?filter=d/throws", nil); !strings.Contains(text, `"error"`) {
		t.Errorf("a filter that throws: %s", text)
	}
}

func TestFilterFunctionsAreLookedUp(t *testing.T) {
	a := nodeAPI(t, config.Values{})
	follow(t, a, []visit{
		{"adm", "PUT", "/db", "", 201, ""},
		{"adm", "PUT", "/db/_design/d", `{"filters":{"f":"function () {}"},"views":{"v":{"map":"function () {}"}}}`, 201, ""},
		{"adm", "GET", "/db/_changes?filter=d/g", "", 404, `{"error":"not_found","reason":"missing json key: g"}`},
		{"adm", "GET", "/db/_changes?filter=e/f", "", 404, `{"error":"not_found","reason":"missing"}`},
		{"adm", "GET", "/db/_changes?filter=f", "", 400, "{\"error\":\"bad_request\",\"reason\":\"`filter` must be of the form `designname/filtername`\"}"},
		{"adm", "GET", "/db/_changes?filter=_f", "", 400, `{"error":"bad_request","reason":"unknown builtin filter name"}`},
		{"adm", "GET", "/db/_changes?filter=_view", "", 400, "{\"error\":\"bad_request\",\"reason\":\"`view` filter parameter is not provided.\"}"},
		{"adm", "GET", "/db/_changes?filter=_view&view=v", "", 400, "{\"error\":\"bad_request\",\"reason\":\"`view` must be of the form `designname/viewname`\"}"},
		{"adm", "GET", "/db/_changes?filter=_view&view=d/w", "", 404, `{"error":"not_found","reason":"missing json key: w"}`},
	})
}

// TestTimeoutWhileFiltering writes all the time what the filter does not pass:
// the timeout counts from the last row all the same.
func TestTimeoutWhileFiltering(t *testing.T) {
	s := newSite(t, nil)
	s.text(201, "PUT", "/db", nil)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				apitest.Ask(t, s.api, fmt.Sprintf("PUT /db/d%d", i), "{}", asAdmin)
			}
		}
	}()
	_, next := s.feed("feed=continuous&filter=_design&timeout=200&since=now")
	if text := withoutSeqs(rest(next)); !strings.HasPrefix(text, "\n{\"last_seq\":\"S\"") {
		t.Errorf("%q", text)
	}
	close(stop)
	<-done
}
