package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"divan/cluster/search"
)

// TestSearchPagesWhileResharding: pages that are read before and behind a split, and a merge, have
// each hit once, or the next page is refused with a reason.
func TestSearchPagesWhileResharding(t *testing.T) {
	const docs = 60
	inTown(t, func(w *town) {
		a, b, _ := w.seeded()
		a.want("PUT", "/pond?q=2&n=2", "", "201")
		a.want("PUT", "/pond/_design/d", `{"indexes":{"i":{"index":"function (doc) { index('default', doc.text); index('n', doc.n); }"}},`+
			`"nouveau":{"i":{"default_analyzer":"standard","index":"function (doc) { index('text', 'default', doc.text); index('double', 'n', doc.n); }"}}}`, "201")
		a.want("POST", "/pond/_index", `{"index":{"fields":[{"name":"n","type":"number"},{"name":"text","type":"string"}]},"type":"text","ddoc":"m","name":"m"}`, "200")
		var want []string
		for i := range docs { // terms are in one half more often than in the other one, and so are scores
			id := fmt.Sprintf("d%03d", i)
			want = append(want, id)
			a.want("PUT", "/pond/"+id, fmt.Sprintf(`{"n":%d,"text":"frog%s"}`, i, strings.Repeat(" frog", i%7)+strings.Repeat(" toad", i%11)), "201")
		}
		queries := []*paged{
			{what: "/pond/_design/d/_search/i", query: `"q":"frog"`, refused: true},
			{what: "/pond/_design/d/_search/i", query: `"q":"frug~ OR toad"`, refused: true},
			{what: "/pond/_design/d/_search/i", query: `"q":"frog","sort":["-<score>","n"]`, refused: true},
			{what: "/pond/_design/d/_search/i", query: `"q":"frog","sort":"n"`},
			{what: "/pond/_design/d/_search/i", query: `"q":"fro* AND n:[0 TO 100]"`},
			{what: "/pond/_design/d/_nouveau/i", query: `"q":"frog"`, refused: true},
			{what: "/pond/_design/d/_nouveau/i", query: `"q":"frog","sort":"-n"`},
			{what: "/pond/_find", query: `"selector":{"$text":"frog"},"use_index":"m"`, refused: true},
			{what: "/pond/_find", query: `"selector":{"n":{"$gte":0}},"use_index":"m","sort":[{"n:number":"asc"}]`},
		}
		for _, change := range []struct {
			name, job string
		}{
			{"split", `{"type":"split","db":"pond","range":"00000000-7fffffff"}`},
			{"merge", `{"type":"merge","db":"pond","range":"00000000-7fffffff"}`},
		} {
			for _, q := range queries {
				q.got, q.bookmark = nil, ""
				for range 2 {
					q.next(t, a)
				}
			}
			a.reshard("pond", change.job, func() {})
			for i, q := range queries {
				from := []*home{a, b}[i%2]
				switch ok := q.next(t, from); {
				case ok == q.refused:
					t.Errorf("%s %s behind a %s: continued %v", q.what, q.query, change.name, ok)
				case !ok:
					q.got, q.bookmark = nil, "" // which begins again
				}
				for before := -1; before < len(q.got); {
					before = len(q.got)
					q.next(t, from)
				}
				if slices.Sort(q.got); !slices.Equal(q.got, want) {
					t.Errorf("%s %s over a %s: %d of %d hits", q.what, q.query, change.name, len(q.got), len(want))
				}
			}
		}
	})
}

// TestBookmarkWithoutRanges: a bookmark by score that does not tell its ranges, as those of older
// versions do not, is refused: they may have been others. Orders of fields go on behind it.
func TestBookmarkWithoutRanges(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.lone()
		h.want("PUT", "/pond?q=2", "", "201")
		h.want("PUT", "/pond/_design/d", `{"indexes":{"i":{"index":"function (doc) { index('default', doc.text); index('n', doc.n); }"}},`+
			`"nouveau":{"i":{"default_analyzer":"standard","index":"function (doc) { index('text', 'default', doc.text); index('double', 'n', doc.n); }"}}}`, "201")
		for i := range 20 {
			h.want("PUT", fmt.Sprintf("/pond/d%03d", i), fmt.Sprintf(`{"n":%d,"text":"frog"}`, i), "201")
		}
		for _, q := range []*paged{
			{what: "/pond/_design/d/_search/i", query: `"q":"frog"`, refused: true},
			{what: "/pond/_design/d/_search/i", query: `"q":"frog","sort":["n","<score>"]`, refused: true},
			{what: "/pond/_design/d/_search/i", query: `"q":"frog","sort":"n"`},
			{what: "/pond/_design/d/_search/i", query: `"q":"*:*"`},
			{what: "/pond/_design/d/_nouveau/i", query: `"q":"frog"`, refused: true},
			{what: "/pond/_design/d/_nouveau/i", query: `"q":"frog","sort":"n"`},
		} {
			q.next(t, h)
			if !q.next(t, h) || len(q.got) != 14 {
				t.Fatalf("%s %s: %d hits", q.what, q.query, len(q.got))
			}
			place, err := search.ParseBookmark(q.bookmark)
			if err != nil || place == nil {
				t.Fatal(place, err)
			}
			place.Asked = search.AnyRanges
			q.bookmark = string(search.AppendBookmark(nil, place))
			if ok := q.next(t, h); ok == q.refused || ok && len(q.got) != 20 {
				t.Errorf("%s %s: continued %v, %d hits", q.what, q.query, ok, len(q.got))
			}
		}
	})
}

// paged is a query of which a client reads pages.
type paged struct {
	what, query string
	refused     bool // its next page is, when ranges are others
	bookmark    string
	got         []string
}

// next reads the next page; ok is false when it cannot be continued.
func (q *paged) next(t *testing.T, h *home) (ok bool) {
	t.Helper()
	body := "{" + q.query + `,"limit":7`
	if q.bookmark != "" {
		body += `,"bookmark":"` + q.bookmark + `"`
	}
	text := h.ask("POST", q.what, body+"}")
	if strings.HasPrefix(text, "400 ") && strings.Contains(text, "cannot be continued") && q.bookmark != "" {
		return false
	}
	type row struct {
		ID  string `json:"id"`
		Doc string `json:"_id"`
	}
	var a struct {
		Bookmark         string
		Rows, Hits, Docs []row
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), &a); err != nil {
		t.Fatalf("%s %s: %.300s: %v", q.what, body, text, err)
	}
	for _, r := range slices.Concat(a.Rows, a.Hits, a.Docs) {
		q.got = append(q.got, r.ID+r.Doc)
	}
	q.bookmark = a.Bookmark
	return true
}
