package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"divan/cluster/config"
	"divan/cluster/events"
	"divan/httpapi/apitest"
)

// seqs are the sequences in an answer.
var seqs = regexp.MustCompile(`"[0-9]+-[A-Za-z0-9_-]*"`)

// updates asks for events; sequences are left out of the answer.
func updates(t *testing.T, a *API, query string, headers ...string) string {
	t.Helper()
	headers = append(headers, "Authorization: Basic YWRtOnBhc3M=")
	w := apitest.Ask(t, a, "GET /_db_updates"+query, "", headers...)
	if w.Code != http.StatusOK {
		t.Errorf("%s: %d %s", query, w.Code, w.Body)
	}
	return seqs.ReplaceAllString(w.Body.String(), "S")
}

// eventsAPI is a node on which some things have happened.
func eventsAPI(t *testing.T) *API {
	t.Helper()
	a := nodeAPI(t, config.Values{"global_changes": {"update_db": "false"}, "chttpd": {"changes_timeout": "200"}})
	follow(t, a, []visit{
		{"adm", "DELETE", "/_global_changes", "", 200, ""},
		{"adm", "GET", "/_db_updates", "", 404, `{"error":"not_found","reason":"Database does not exist."}`},
		{"adm", "PUT", "/_global_changes?q=1", "", 201, ""},
		{"adm", "PUT", "/_global_changes/created:a", "{}", 201, ""},
		{"adm", "PUT", "/_global_changes/_design%2Fx", "{}", 201, ""},
		{"adm", "PUT", "/_global_changes/other:a", "{}", 201, ""},
		{"adm", "PUT", "/_global_changes/updated:a%2Fb:c", "{}", 201, ""},
		{"adm", "PUT", "/_global_changes/deleted:a", "{}", 201, ""},
	})
	return a
}

func TestDBUpdates(t *testing.T) {
	a := eventsAPI(t)
	const (
		created = `{"db_name":"a","type":"created","seq":S}`
		updated = `{"db_name":"a/b:c","type":"updated","seq":S}`
		deleted = `{"db_name":"a","type":"deleted","seq":S}`
		open    = "{\"results\":[\n"
		end     = "\n],\n\"last_seq\":S}\n"
		all     = open + created + ",\r\n" + updated + ",\r\n" + deleted + end
	)
	raw := func(id string) string { // a row like that of any feed
		return `{"seq":S,"id":"` + id + `","changes":[{"rev":S}]}`
	}
	for _, tc := range []struct{ query, want string }{
		{"", all},
		{"?feed=normal&descending=true", open + deleted + ",\r\n" + updated + ",\r\n" + created + end},
		{"?limit=0", open + end},
		{"?limit=2", open + created + ",\r\n" + updated + end},
		{"?since=now", open + end},
		{"?since=0&what=ever&heartbeat=false", all},
		{"?feed=longpoll&timeout=300000", all},
		{"?feed=longpoll&timeout=0&since=now", open + end},
		{"?feed=longpoll&since=now", open + end},
		{"?feed=longpoll&limit=1", open + created + end},
		{"?feed=continuous&timeout=0", created + "\n" + updated + "\n" + deleted + "\n{\"last_seq\":S}\n"},
		{"?feed=continuous&limit=1", created + "\n{\"last_seq\":S}\n"},
		{"?feed=eventsource&limit=2", "data: " + raw("created:a") + "\nid: S\n\ndata: " + raw("_design/x") + "\nid: S\n\n"},
		{"?feed=eventsource&descending=true&limit=1", "data: " + raw("deleted:a") + "\nid: S\n\n"},
		{"?feed=eventsource&limit=0", ""},
		{"?feed=eventsource&since=now&timeout=0", ""},
	} {
		got, want := plainLines(updates(t, a, tc.query)), plainLines(tc.want) // a feed that waits may begin with a line end
		if got != want {
			t.Errorf("%s: %q, want %q", tc.query, got, want)
		}
	}
	w := apitest.Ask(t, a, "GET /_db_updates?limit=2", "", "Authorization: Basic YWRtOnBhc3M=")
	found := seqs.FindAllString(w.Body.String(), -1)
	last := strings.Trim(found[len(found)-1], `"`)
	if got := updates(t, a, "?since="+last); got != open+deleted+end {
		t.Errorf("since the second: %s", got)
	}
	if got := updates(t, a, "", "Last-Event-ID: "+last); got != open+deleted+end {
		t.Errorf("Last-Event-ID: %s", got)
	}
	if w.Header().Get("Etag") == "" {
		t.Error("no entity tag")
	}
	if w := apitest.Ask(t, a, "GET /_db_updates?limit=2", "", "Authorization: Basic YWRtOnBhc3M=", "If-None-Match: "+w.Header().Get("Etag")); w.Code != http.StatusNotModified {
		t.Errorf("nothing has changed: %d", w.Code)
	}
}

func TestDBUpdatesRefusals(t *testing.T) {
	a := nodeAPI(t, nil)
	for _, query := range []string{"limit=few", "limit=-1", "timeout=long", "timeout=-5", "heartbeat=fast", "heartbeat=0"} {
		follow(t, a, []visit{{"adm", "GET", "/_db_updates?" + query, "", 400, refusal("invalid_integer")}})
	}
	follow(t, a, []visit{
		{"adm", "GET", "/_db_updates?feed=sometimes", "", 400, refusal("Supported `feed` types: normal, continuous, longpoll, eventsource")},
		{"adm", "GET", "/_db_updates?since=what", "", 400, ""},
		{"adm", "POST", "/_db_updates", "{}", 405, `{"error":"method_not_allowed","reason":"Only GET allowed"}`},
		{"", "GET", "/_db_updates", "", 401, `{"error":"unauthorized","reason":"You are not a server admin."}`},
	})
}

// A feed that waits gets what happens, heartbeats meanwhile, and an end when
// its database goes.
func TestDBUpdatesWait(t *testing.T) {
	a := eventsAPI(t)
	var page struct {
		Last string `json:"last_seq"`
	}
	apitest.Must(t, json.Unmarshal(apitest.Ask(t, a, "GET /_db_updates", "", "Authorization: Basic YWRtOnBhc3M=").Body.Bytes(), &page))
	feed := &overheard{ResponseRecorder: httptest.NewRecorder()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		line := "GET /_db_updates?feed=continuous&heartbeat=10&since=" + url.QueryEscape(page.Last)
		a.ServeHTTP(feed, apitest.Request(t, line, "", []string{"Authorization: Basic YWRtOnBhc3M="}))
	}()
	apitest.WaitFor(t, func() bool { return a.OpenFeeds() == 1 })
	follow(t, a, []visit{
		{"adm", "PUT", "/_global_changes/created:b", "{}", 201, ""},
		{"adm", "PUT", "/_global_changes/other:b", "{}", 201, ""},
	})
	apitest.WaitFor(t, func() bool {
		return strings.Contains(updates(t, a, "?feed=longpoll&timeout=1"), `"b"`) && strings.Contains(feed.text(), `"b"`)
	})
	apitest.Must(t, a.Deps.Coordinator.DeleteDB(t.Context(), events.GlobalChanges))
	<-ended
	if got, want := plainLines(feed.text()), `{"db_name":"b","type":"created","seq":S}`+"\n{\"last_seq\":S}\n"; got != want {
		t.Errorf("%q", got)
	}
}

// overheard is an answer that can be read while it is written.
type overheard struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

// Write implements io.Writer.
func (o *overheard) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ResponseRecorder.Write(b)
}

func (o *overheard) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return seqs.ReplaceAllString(o.Body.String(), "S")
}

// plainLines leaves empty lines out.
func plainLines(text string) string {
	for strings.Contains(text, "\n\n") {
		text = strings.ReplaceAll(text, "\n\n", "\n")
	}
	return strings.TrimLeft(text, "\n")
}
