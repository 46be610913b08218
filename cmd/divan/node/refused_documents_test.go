package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// oddSource is a database of another server with documents that no target takes.
type oddSource struct {
	t    *testing.T
	docs []oddDoc
	bulk bool // it has _bulk_get
	mu   struct {
		sync.Mutex
		local map[string]string
	}
}

// oddDoc is a document as the source sends it.
type oddDoc struct{ id, text string }

func (s *oddSource) add(id, members string) {
	name, err := json.Marshal(id)
	if err != nil {
		s.t.Fatal(err)
	}
	s.docs = append(s.docs, oddDoc{id, fmt.Sprintf(`{"_id":%s,"_rev":"1-%032x","_revisions":{"start":1,"ids":["%032x"]}%s}`, name, 1, 1, members)})
}

// ServeHTTP implements http.Handler.
func (s *oddSource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/src/")
	body, _ := io.ReadAll(r.Body) // of a client that waits for the answer
	say := func(status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the client says what it lacks
	}
	switch {
	case path == "":
		say(http.StatusOK, fmt.Sprintf(`{"db_name":"src","update_seq":"%d-x","instance_start_time":"0"}`, len(s.docs)))
	case strings.HasPrefix(path, "_local/") && r.Method == http.MethodPut:
		s.mu.local[path] = string(body)
		say(http.StatusCreated, `{"ok":true,"id":"_local/x","rev":"0-1"}`)
	case s.mu.local[path] != "":
		say(http.StatusOK, s.mu.local[path])
	case path == "_changes":
		say(http.StatusOK, s.changes(r.URL.Query().Get("since")))
	case path == "_ensure_full_commit":
		say(http.StatusCreated, `{"ok":true,"instance_start_time":"0"}`)
	case path == "_bulk_get" && s.bulk:
		say(http.StatusOK, s.results(string(body)))
	case r.URL.Query().Has("open_revs"):
		id, _ := url.PathUnescape(path)
		for _, d := range s.docs {
			if d.id == id {
				say(http.StatusOK, `[{"ok":`+d.text+`}]`)
				return
			}
		}
		say(http.StatusOK, `[]`)
	default:
		say(http.StatusNotFound, `{"error":"not_found","reason":"missing"}`)
	}
}

// changes is the feed behind a position, "3-x".
func (s *oddSource) changes(since string) string {
	from := 0
	_, _ = fmt.Sscanf(strings.Trim(since, `"`), "%d-", &from) // the beginning when there is none
	rows := []string{}
	for i := from; i < len(s.docs); i++ {
		id, _ := json.Marshal(s.docs[i].id) // it was encoded before
		rows = append(rows, fmt.Sprintf(`{"seq":"%d-x","id":%s,"changes":[{"rev":"1-%032x"}]}`, i+1, id, 1))
	}
	return fmt.Sprintf("{\"results\":[\n%s\n],\"last_seq\":\"%d-x\",\"pending\":0}", strings.Join(rows, ",\n"), len(s.docs))
}

// results answers a request for several documents.
func (s *oddSource) results(wanted string) string {
	out := []string{}
	for _, d := range s.docs {
		id, _ := json.Marshal(d.id) // likewise
		if strings.Contains(wanted, `"id":`+string(id)) {
			out = append(out, fmt.Sprintf(`{"id":%s,"docs":[{"ok":%s}]}`, id, d.text))
		}
	}
	return `{"results":[` + strings.Join(out, ",") + `]}`
}

// A document that no target would take counts as doc_write_failures, and those before and
// behind it come; another run has nothing to do.
func TestDocumentsThatNoTargetTakes(t *testing.T) {
	for _, bulk := range []bool{true, false} {
		t.Run(fmt.Sprintf("bulk %t", bulk), func(t *testing.T) {
			s := &oddSource{t: t, bulk: bulk}
			s.mu.local = map[string]string{}
			s.add("first", `,"n":1`)
			s.add("surrogate", `,"text":"a \ud800 alone"`)
			s.add("deep", `,"a":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000))
			s.add("member", `,"_odd":1`)
			s.add(strings.Repeat("long", 1<<15), `,"n":2`)
			s.add("last", `,"n":3`)
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			h := start(t, inMemory(t))
			h.want("PUT", "/sink", "", "201")
			body := fmt.Sprintf(`{"source":"%s/src","target":"sink"}`, server.URL)
			var answer struct {
				OK        bool `json:"ok"`
				NoChanges bool `json:"no_changes"`
				History   []struct {
					Written  int `json:"docs_written"`
					Failures int `json:"doc_write_failures"`
				} `json:"history"`
			}
			text, _ := strings.CutPrefix(h.ask("POST", "/_replicate", body), "200 ")
			if err := json.Unmarshal([]byte(text), &answer); err != nil || !answer.OK || len(answer.History) != 1 {
				t.Fatalf("%s: %v", text, err)
			}
			if got := answer.History[0]; got.Written != 2 || got.Failures != 4 {
				t.Errorf("%+v", got)
			}
			h.want("GET", "/sink/first", "", "200")
			h.want("GET", "/sink/last", "", "200")
			h.want("GET", "/sink/surrogate", "", "404")
			h.want("POST", "/_replicate", body, `200 {"ok":true,"no_changes":true`)
		})
	}
}
