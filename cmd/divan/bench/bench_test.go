package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// couch is as much of a CouchDB as the workloads of documents need.
type couch struct {
	mu   sync.Mutex
	revs map[string]string // of documents, by path
	peer *couch            // another server
	puts int64             // documents written one by one

	refuses bool // histories
}

// ServeHTTP implements http.Handler.
func (c *couch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != "adm" || password != "p:ss" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	db, id, isDoc := strings.Cut(r.URL.Path[1:], "/")
	switch {
	case r.URL.Path == "/_all_dbs":
		w.Header().Set("Server", "Couch")
	case r.URL.Path == "/_replicate":
		c.replicate(w, r)
	case r.URL.RawQuery == "limit=0":
		n := 0
		for path := range c.revs {
			if strings.HasPrefix(path, "/"+db+"/") {
				n++
			}
		}
		fmt.Fprintf(w, `{"total_rows":%d,"offset":0,"rows":[]}`, n)
	case r.Method == http.MethodDelete:
		for path := range c.revs {
			if strings.HasPrefix(path, "/"+db+"/") {
				delete(c.revs, path)
			}
		}
	case !isDoc:
		w.WriteHeader(http.StatusCreated)
	case id == "_bulk_docs":
		c.bulk(w, r, db)
	case strings.HasPrefix(id, "_design/bench/_view/"):
		c.view(w, r, db, strings.TrimPrefix(id, "_design/bench/_view/"))
	case strings.HasPrefix(id, "_design/bench/_search/text"):
		if q := r.FormValue("q"); c.revs["/"+db+"/_design/bench"] == "" || q == "" || q[0] == '"' && !strings.Contains(q, " ") {
			http.Error(w, r.URL.String(), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"total_rows":1,"bookmark":"x","rows":[{"id":"x","order":[1.0,0],"fields":{}}]}`)
	case id == "_index":
		fmt.Fprint(w, `{"result":"created"}`)
	case id == "_find":
		c.find(w, r, db)
	case r.Method == http.MethodPut:
		var doc struct {
			Rev string `json:"_rev"`
		}
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil || doc.Rev != c.revs[r.URL.Path] {
			http.Error(w, fmt.Sprint("conflict ", err), http.StatusConflict)
			return
		}
		c.puts++
		rev := fmt.Sprintf("%d-abc", 1+len(doc.Rev))
		c.revs[r.URL.Path] = rev
		w.Header().Set("ETag", `"`+rev+`"`)
		w.WriteHeader(http.StatusCreated)
	case id == "_all_docs" && r.FormValue("limit") == "20":
		id = strings.Trim(r.FormValue("startkey"), `"`)
		fallthrough
	default:
		if c.revs["/"+db+"/"+id] == "" {
			http.Error(w, "missing "+id, http.StatusNotFound)
		}
	}
}

// view answers questions to the views of the benchmark, whose design document
// must be there.
func (c *couch) view(w http.ResponseWriter, r *http.Request, db, view string) {
	number := func(name string, least, most int) bool {
		n, err := strconv.Atoi(r.FormValue(name))
		return err == nil && n >= least && n <= most
	}
	switch {
	case c.revs["/"+db+"/_design/bench"] == "":
		http.Error(w, "no design document", http.StatusNotFound)
	case view == "by_value" && r.FormValue("limit") == "20" && r.FormValue("reduce") == "false" && number("startkey", 0, 999):
		fmt.Fprint(w, `{"total_rows":1,"offset":0,"rows":[{"id":"x","key":1,"value":2}]}`)
	case view == "by_value" && (r.URL.RawQuery == "" || number("startkey", 0, 999) && number("endkey", 1, 1000)),
		view == "by_group" && r.FormValue("group_level") == "1":
		fmt.Fprint(w, `{"rows":[{"key":null,"value":2}]}`)
	case view == "by_group" && r.FormValue("reduce") == "false":
		var key [2]int
		if err := json.Unmarshal([]byte(r.FormValue("key")), &key); err != nil || key[0] != key[1]%groups {
			http.Error(w, fmt.Sprint("key ", key, err), http.StatusBadRequest)
			return
		}
		for path := range c.revs { // the number of a document is the end of its id
			if strings.HasPrefix(path, "/"+db+"/") && strings.HasSuffix(path, fmt.Sprintf("%06x", key[1])) {
				fmt.Fprintf(w, `{"rows":[{"id":%q}]}`, path)
				return
			}
		}
		fmt.Fprint(w, `{"rows":[]}`)
	default:
		http.Error(w, r.URL.String(), http.StatusBadRequest)
	}
}

func (c *couch) find(w http.ResponseWriter, r *http.Request, db string) {
	var query struct {
		Selector struct {
			N    *int
			Type string
		}
	}
	err := json.NewDecoder(r.Body).Decode(&query)
	switch {
	case err != nil || (query.Selector.N == nil) == (query.Selector.Type == ""):
		http.Error(w, fmt.Sprint(query, err), http.StatusBadRequest)
	case query.Selector.N != nil:
		fmt.Fprintf(w, `{"docs":[{"_id":%q}]}`, db)
	default:
		fmt.Fprint(w, `{"docs":[]}`)
	}
}

// replicate copies a database to another one of this server or of c.peer.
func (c *couch) replicate(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Source, Target string
		CreateTarget   bool `json:"create_target"`
	}
	err := json.NewDecoder(r.Body).Decode(&in)
	source, err1 := url.Parse(in.Source)
	target, err2 := url.Parse(in.Target)
	if err = errors.Join(err, err1, err2); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	to := c
	if target.Host != r.Host {
		to = c.peer
		to.mu.Lock()
		defer to.mu.Unlock()
	}
	copied := map[string]string{}
	for path, rev := range c.revs {
		if rest, ok := strings.CutPrefix(path, source.Path+"/"); ok {
			copied[target.Path+"/"+rest] = rev
		}
	}
	maps.Copy(to.revs, copied)
	fmt.Fprint(w, `{"ok":true,"history":[]}`)
}

func (c *couch) bulk(w http.ResponseWriter, r *http.Request, db string) {
	var in struct {
		Docs []struct {
			ID        string `json:"_id"`
			Rev       string `json:"_rev"`
			Revisions struct {
				Start int
				IDs   []string
			} `json:"_revisions"`
		}
		NewEdits *bool `json:"new_edits"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	history := in.NewEdits != nil && !*in.NewEdits
	for _, d := range in.Docs {
		rev := "1-abc"
		if history {
			rev = d.Rev
			ids := d.Revisions.IDs
			if len(ids) != 400 || d.Revisions.Start != 400 || rev != "400-"+ids[0] || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 400 {
				http.Error(w, fmt.Sprint("the history of ", rev), http.StatusBadRequest)
				return
			}
		}
		c.revs["/"+db+"/"+d.ID] = rev
	}
	w.WriteHeader(http.StatusCreated)
	if history {
		fmt.Fprintln(w, c.refusals())
	}
}

// refusals are what a write of a history is answered with.
func (c *couch) refusals() string {
	if c.refuses {
		return `[{"id":"u-0-0","error":"forbidden","reason":"no"}]`
	}
	return "[]"
}

func TestRun(t *testing.T) {
	var pids []int
	if runtime.GOOS == "linux" {
		pids = []int{os.Getpid()} // the server is in this process
	}
	for _, random := range []bool{false, true} {
		peer := &couch{revs: map[string]string{}}
		second := httptest.NewServer(peer)
		defer second.Close()
		own := &couch{revs: map[string]string{}, peer: peer}
		server := httptest.NewServer(own)
		defer server.Close()
		report, err := Run(t.Context(), Config{
			URL: withPassword(server), Peer: withPassword(second), Clients: 5, Duration: 200 * time.Millisecond,
			Docs: 250, DocSize: 300, Batch: 100, RandomIDs: random, PIDs: pids,
			Only: []string{
				"put", "put_one", "put_view", "update", "update_hot", "bulk", "get", "all_docs_limit_20",
				"view_build", "view_range", "view_reduce", "view_group", "view_fresh", "find_build", "find", "find_scan",
				"search_build", "search_term", "search_phrase", "search_facet", "replicate_local", "replicate_http", "replicate_idle",
			},
		})
		if err != nil || len(report.Results) != 23 || report.Server != "Couch" {
			t.Fatalf("error %v, report %+v", err, report)
		}
		cpu := 0.0
		for _, r := range report.Results {
			cpu += r.ServerCPU
			if r.Errors > 0 || r.Count == 0 || r.PerSecond <= 0 || r.Max <= 0 {
				t.Errorf("%+v", r)
			}
		}
		if len(own.revs)+len(peer.revs) > 0 {
			t.Errorf("%d documents are left, and %d at the second server", len(own.revs), len(peer.revs))
		}
		if (cpu > 0) != (len(pids) > 0) {
			t.Errorf("the requests took %f ms of processor time", cpu)
		}
		var out bytes.Buffer
		if err := report.Print(&out); err != nil || strings.Count(out.String(), "\n") != 25 {
			t.Errorf("error %v, report %s", err, &out)
		}
	}
}

func TestRunFails(t *testing.T) {
	server := httptest.NewServer(&couch{})
	defer server.Close()
	for url, message := range map[string]string{
		server.URL:           "refuses us with status 401",
		"http://127.0.0.1:1": "does not answer as it should",
		"https://x":          "must look like",
	} {
		_, err := Run(t.Context(), Config{URL: url, Clients: 1})
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: error %v", url, err)
		}
	}
	if _, err := Run(t.Context(), Config{URL: server.URL, Clients: 1, PIDs: []int{-1}}); err == nil || strings.Contains(err.Error(), "refuses") {
		t.Errorf("there is no such process: %v", err)
	}
	if _, err := Run(t.Context(), Config{URL: server.URL, Only: []string{"replicate_http"}}); err == nil || !strings.Contains(err.Error(), "--peer") {
		t.Errorf("without a second server: %v", err)
	}
	if _, err := Run(t.Context(), Config{Only: []string{"dance"}}); err == nil {
		t.Error("there is no such workload")
	}
}

func TestDocuments(t *testing.T) {
	for _, size := range []int{0, 10, 200, 1024, 2 << 20} {
		d := &documents{size: size, idPrefix: strings.Repeat("0123456789abcdef", 2), text: newText(size)}
		for _, n := range []int64{0, 1, textWords - 1, textWords, 123456789} {
			text := d.appendDoc([]byte("before"), []byte("i"), []byte("1-a"), n)[len("before"):]
			var doc struct {
				ID  string `json:"_id"`
				Rev string `json:"_rev"`
				N   int64
			}
			if err := json.Unmarshal(text, &doc); err != nil || doc.ID != "i" || doc.Rev != "1-a" || doc.N != n {
				t.Errorf("document %d of %d bytes: error %v, %.200s", n, size, err, text)
			}
			if size >= 200 && len(text) != size {
				t.Errorf("document %d has %d bytes, not %d", n, len(text), size)
			}
			if id := string(d.appendID(nil, n)); id != fmt.Sprintf("%.26s%06x", d.idPrefix, n) {
				t.Errorf("id %d is %s", n, id)
			}
			d.random = true
			if id := string(d.appendID(nil, n)); id != fmt.Sprintf("%016x%016x", mix(uint64(n)), n) {
				t.Errorf("random id %d is %s", n, id)
			}
			d.random = false
		}
	}
}

// An interrupted run has no row of the workload that was under way, nor of those
// behind it.
func TestInterrupted(t *testing.T) {
	server := httptest.NewServer(&couch{revs: map[string]string{}})
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var rows sync.Once
	report, err := Run(ctx, Config{
		URL: withPassword(server), Clients: 2, Duration: time.Hour, Docs: 10, DocSize: 300, Batch: 5,
		Only: []string{"bulk", "get", "all_docs_limit_20"}, Progress: writer(func(line string) {
			if strings.Contains(line, "get") { // it is under way
				rows.Do(cancel)
			}
		}),
	})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "get: interrupted") {
		t.Errorf("error %v", err)
	}
	if len(report.Results) != 1 || report.Results[0].Name != "bulk" {
		t.Errorf("%+v", report.Results)
	}
}

// writer calls a function with each text.
type writer func(text string)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// What the updates do before their clock runs is not counted: their documents are made.
func TestUpdatesMeasureUpdates(t *testing.T) {
	for name, c := range map[string]struct {
		docs  int
		first int64 // documents written one by one before the clock runs
	}{"update": {300, 300}, "update_hot": {3, 0}} {
		t.Run(name, func(t *testing.T) {
			server := &couch{revs: map[string]string{}}
			report, err := runOn(t, server, Config{Clients: 3, Duration: 50 * time.Millisecond, Only: []string{name}, Keep: true})
			if err != nil {
				t.Fatal(err)
			}
			if r := report.Results[0]; len(server.revs) != c.docs || r.Count != server.puts-c.first || r.Errors != 0 {
				t.Errorf("%d documents, %d writes, of which %d count, %d failed", len(server.revs), server.puts, r.Count, r.Errors)
			}
		})
	}
}

// A history that the server refuses is no document to update.
func TestRefusedHistory(t *testing.T) {
	_, err := runOn(t, &couch{revs: map[string]string{}, refuses: true}, Config{Clients: 1, Duration: time.Hour, Only: []string{"update_hot"}})
	if err == nil || !strings.Contains(err.Error(), "update_hot: the history was not written") || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("error %v", err)
	}
}

// put_one never has two requests under way.
func TestPutOneHasOneClient(t *testing.T) {
	server := &couch{revs: map[string]string{}}
	var under, most atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), under.Add(1)))
		defer under.Add(-1)
		server.ServeHTTP(w, r)
	}))
	defer web.Close()
	report, err := Run(t.Context(), Config{URL: withPassword(web), Clients: 8, Duration: 50 * time.Millisecond, Only: []string{"put_one"}})
	if err != nil || report.Results[0].Count == 0 || most.Load() != 1 {
		t.Errorf("%d at the same time, error %v", most.Load(), err)
	}
}

// runOn loads that server.
func runOn(t *testing.T, server *couch, cfg Config) (*Report, error) {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	cfg.URL, cfg.DocSize = withPassword(web), 300
	return Run(t.Context(), cfg)
}

// withPassword is the URL of a server with the user that it lets in.
func withPassword(server *httptest.Server) string {
	return strings.Replace(server.URL, "//", "//adm:p%3Ass@", 1)
}
