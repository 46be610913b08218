package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"divan/httpapi/apitest"
)

// found is the answer of _find.
type found struct {
	Docs []struct {
		ID string `json:"_id"`
		N  int
	}
	Bookmark, Warning string
	Count             int
	Stats             *struct {
		Keys    int `json:"total_keys_examined"`
		Docs    int `json:"total_docs_examined"`
		Quorum  int `json:"total_quorum_docs_examined"`
		Results int `json:"results_returned"`
	} `json:"execution_stats"`
}

// finder is a node with databases that are queried.
type finder struct {
	t *testing.T
	h http.Handler
}

func (f *finder) ask(line, body string, out any) int {
	f.t.Helper()
	w := apitest.Ask(f.t, f.h, line, body, "Authorization: Basic YWRtOnBhc3M=", "Content-Type: application/json")
	if out != nil {
		if err := json.Unmarshal(w.Body.Bytes(), out); err != nil {
			f.t.Fatalf("%s %s: %d %s", line, body, w.Code, w.Body)
		}
	}
	return w.Code
}

func (f *finder) find(db, request string) (out found) {
	f.t.Helper()
	if code := f.ask("POST /"+db+"/_find", request, &out); code != http.StatusOK {
		f.t.Fatalf("%s: %d", request, code)
	}
	return out
}

// ids returns the documents of an answer, "id:n".
func (r *found) ids() (out []string) {
	for _, d := range r.Docs {
		out = append(out, fmt.Sprint(d.ID, ":", d.N))
	}
	return out
}

// fill makes a database of 120 documents whose n is their number modulo 11, and an
// index on that.
func (f *finder) fill(db string, q int) (docs []string) {
	f.t.Helper()
	f.ask(fmt.Sprintf("PUT /%s?q=%d", db, q), "", nil)
	var list []string
	for i := range 120 {
		list = append(list, fmt.Sprintf(`{"_id":"d%03d","n":%d,"t":"%c"}`, i, i%11, 'a'+i%3))
		docs = append(docs, fmt.Sprintf("d%03d:%d", i, i%11))
	}
	f.ask("POST /"+db+"/_bulk_docs", `{"docs":[`+strings.Join(list, ",")+`]}`, nil)
	f.ask("POST /"+db+"/_index", `{"index":{"fields":["n"]},"ddoc":"n","name":"n"}`, nil)
	return docs
}

// wanted filters and sorts: by n, or else by id.
func wanted(docs []string, keep func(n int) bool, byN, desc bool) []string {
	n := func(s string) (v int) {
		_, text, _ := strings.Cut(s, ":")
		_, _ = fmt.Sscan(text, &v)
		return v
	}
	out := slices.DeleteFunc(slices.Clone(docs), func(s string) bool { return !keep(n(s)) })
	slices.SortStableFunc(out, func(a, b string) int {
		if byN && n(a) != n(b) {
			return n(a) - n(b)
		}
		return strings.Compare(a, b)
	})
	if desc {
		slices.Reverse(out)
	}
	return out
}

// TestFindMergesShards compares answers over several shards, whole, in pages and with
// skip, with what is in memory.
func TestFindMergesShards(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	for _, q := range []int{1, 2, 8} {
		db := fmt.Sprint("db", q)
		docs := f.fill(db, q)
		for _, tc := range []struct {
			selector, sort string
			keep           func(n int) bool
			byN, desc      bool
		}{
			{`{"n":{"$gt":3}}`, `["n"]`, func(n int) bool { return n > 3 }, true, false},
			{`{"n":{"$gt":3}}`, `[{"n":"desc"}]`, func(n int) bool { return n > 3 }, true, true},
			{`{"n":{"$in":[1,7,9]}}`, `[]`, func(n int) bool { return n == 1 || n == 7 || n == 9 }, true, false},
			{`{"$or":[{"n":{"$lt":2}},{"n":10}]}`, `[{"n":"desc"}]`, func(n int) bool { return n < 2 || n == 10 }, true, true},
			{`{"_id":{"$gt":null},"n":{"$mod":[2,0]}}`, `[{"_id":"desc"}]`, func(n int) bool { return n%2 == 0 }, false, true},
			{`{"t":{"$exists":true}}`, `[]`, func(int) bool { return true }, false, false},
		} {
			want := wanted(docs, tc.keep, tc.byN, tc.desc)
			request := fmt.Sprintf(`{"selector":%s,"sort":%s,"fields":["_id","n"]`, tc.selector, tc.sort)
			whole := f.find(db, request+`,"limit":1000}`)
			if got := whole.ids(); !slices.Equal(got, want) {
				t.Errorf("q=%d %s: %q, want %q", q, request, got, want)
			}
			rest := f.find(db, request+`,"limit":5,"skip":7}`)
			if got := rest.ids(); !slices.Equal(got, want[7:12]) {
				t.Errorf("q=%d %s skip 7: %q", q, request, got)
			}
			careful := f.find(db, request+`,"limit":9,"r":2}`)
			if got := careful.ids(); !slices.Equal(got, want[:9]) {
				t.Errorf("q=%d %s r=2: %q", q, request, got)
			}
			var paged []string
			for page := (found{}); ; {
				page = f.find(db, request+`,"limit":7,"bookmark":"`+page.Bookmark+`"}`)
				if paged = append(paged, page.ids()...); len(page.Docs) < 7 {
					break
				}
			}
			if !slices.Equal(paged, want) {
				t.Errorf("q=%d %s in pages: %q", q, request, paged)
			}
			counted := f.find(db, request+`,"count":true,"limit":3}`)
			if counted.Count != len(want) || counted.Docs != nil {
				t.Errorf("q=%d %s: counted %d of %d", q, request, counted.Count, len(want))
			}
		}
	}
}

func TestFindReadsWhatItNeeds(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	f.fill("db", 1)
	for _, tc := range []struct {
		request    string
		keys, docs int
	}{
		{`{"selector":{"n":4},"execution_stats":true}`, 11, 11},
		{`{"selector":{"n":4},"fields":["n","_id"],"execution_stats":true}`, 11, 0},
		{`{"selector":{"n":{"$in":[4,5]}},"execution_stats":true}`, 22, 22},
		{`{"selector":{"$or":[{"n":4},{"n":{"$gte":10}}]},"count":true,"execution_stats":true}`, 21, 0},
		{`{"selector":{"_id":{"$in":["d003","d004","e"]}},"execution_stats":true}`, 2, 2},
		{`{"selector":{"_id":{"$gte":"d100","$lt":"d105"}},"execution_stats":true}`, 6, 6},
	} {
		got := f.find("db", tc.request)
		if got.Stats == nil || got.Stats.Keys != tc.keys || got.Stats.Docs != tc.docs {
			t.Errorf("%s: %+v, want %d keys and %d documents", tc.request, got.Stats, tc.keys, tc.docs)
		}
	}
}

// TestFiguresWithLimit: a query that ends early has looked at its results and the row
// behind them, over however many shards; one that ends by itself, at what there is.
func TestFiguresWithLimit(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	for _, q := range []int{1, 2, 8} {
		db := fmt.Sprint("db", q)
		f.fill(db, q)
		for _, tc := range []struct {
			request    string
			keys, docs int
		}{
			{`{"selector":{"n":{"$lte":8}},"limit":3,"execution_stats":true}`, 4, 4},
			{`{"selector":{"n":{"$lte":8}},"limit":3,"skip":2,"execution_stats":true}`, 6, 6},
			{`{"selector":{"n":{"$lte":8}},"fields":["n"],"limit":3,"execution_stats":true}`, 4, 0},
			{`{"selector":{"_id":{"$gte":"d003"}},"limit":3,"execution_stats":true}`, 4, 4},
			{`{"selector":{"n":4},"limit":11,"execution_stats":true}`, 11, 11},
			{`{"selector":{"n":4},"limit":9223372036854775807,"skip":1,"execution_stats":true}`, 11, 11},
		} {
			got := f.find(db, tc.request)
			if got.Stats == nil || got.Stats.Keys != tc.keys || got.Stats.Docs != tc.docs {
				t.Errorf("%s over %d shards: %+v, want %d keys and %d documents", tc.request, q, got.Stats, tc.keys, tc.docs)
			}
		}
	}
}

// TestFindOfAnEmptyRange: CouchDB does not run a query whose leading column has no
// value in any match, and tells nothing about it.
func TestFindOfAnEmptyRange(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	f.fill("db", 1)
	for request, silent := range map[string]bool{
		`{"selector":{"n":{"$gt":5,"$lt":3}},"execution_stats":true}`: true,
		`{"selector":{"$or":[]},"execution_stats":true}`:              true,
		`{"selector":{"q":{"$gt":5,"$lt":3}},"execution_stats":true}`: false,
	} {
		if got := f.find("db", request); len(got.Docs) > 0 || (got.Bookmark == "") != silent || (got.Stats == nil) != silent {
			t.Errorf("%s: %+v", request, got)
		}
	}
}

// TestFindInPartitions asks within partitions, and with indexes of both scopes.
func TestFindInPartitions(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	f.ask("PUT /db?q=4&partitioned=true", "", nil)
	var list []string
	for i := range 60 {
		list = append(list, fmt.Sprintf(`{"_id":"p%d:d%03d","n":%d}`, i%3, i, i%7))
	}
	f.ask("POST /db/_bulk_docs", `{"docs":[`+strings.Join(list, ",")+`]}`, nil)
	sorted := `{"selector":{"n":{"$gt":2}},"sort":["n"],"fields":["_id","n"],"limit":100}`
	if code := f.ask("POST /db/_partition/p1/_find", sorted, nil); code != http.StatusBadRequest {
		t.Errorf("sorted without an index: %d", code)
	}
	f.ask("POST /db/_index", `{"index":{"fields":["n"]},"ddoc":"p","name":"n"}`, nil)
	f.ask("POST /db/_index", `{"index":{"fields":["n"]},"ddoc":"g","name":"n","partitioned":false}`, nil)
	count := func(path, request string) int {
		var out found
		if code := f.ask("POST "+path, request, &out); code != http.StatusOK || out.Warning != "" {
			t.Errorf("%s: %d %s", path, code, out.Warning)
		}
		for _, d := range out.Docs {
			if strings.Contains(path, "p1") && !strings.HasPrefix(d.ID, "p1:") {
				t.Errorf("%s in p1", d.ID)
			}
		}
		return len(out.Docs)
	}
	if n := count("/db/_partition/p1/_find", sorted); n != 11 {
		t.Errorf("%d in a partition, want 11", n)
	}
	if n := count("/db/_find", sorted); n != 33 {
		t.Errorf("%d in the database, want 33", n)
	}
	var all found
	f.ask("POST /db/_partition/p2/_find", `{"selector":{"_id":{"$gt":"p2:d030"}},"fields":["_id"]}`, &all)
	if len(all.Docs) != 10 {
		t.Errorf("%q by id in a partition", all.ids())
	}
	for request, want := range map[string]int{
		`{"selector":{},"partition":"p0"}`: http.StatusBadRequest,
		`{"selector":{},"partition":"p1"}`: http.StatusOK,
	} {
		if code := f.ask("POST /db/_partition/p1/_find", request, nil); code != want {
			t.Errorf("%s: %d", request, code)
		}
	}
	if code := f.ask("POST /db/_partition/_x/_find", `{"selector":{}}`, nil); code != http.StatusBadRequest {
		t.Errorf("a bad name: %d", code)
	}
}

// TestFindSeesWhatWasWritten asks right after each write, through an index.
func TestFindSeesWhatWasWritten(t *testing.T) {
	f := &finder{t, nodeAPI(t, nil)}
	f.fill("db", 2)
	for i := range 20 {
		f.ask(fmt.Sprintf("PUT /db/new%d", i), fmt.Sprintf(`{"n":%d}`, 1000+i), nil)
		if got := f.find("db", fmt.Sprintf(`{"selector":{"n":%d},"fields":["_id","n"]}`, 1000+i)); len(got.Docs) != 1 {
			t.Fatalf("document %d is not found", i)
		}
	}
}
