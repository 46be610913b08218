package cluster

import (
	"fmt"
	"testing"

	"divan/shard"
	"divan/storage/doc"
)

// TestAllDocs follows golden alldocs/01: order, ranges, totals and offsets.
func TestAllDocs(t *testing.T) {
	w := start(t, setup{})
	for _, q := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("q=%d", q), func(t *testing.T) {
			d := w.create(fmt.Sprintf("db%d", q), CreateOptions{Q: q})
			fillAlldocs(t, d)
			for _, tc := range alldocsCases() {
				t.Run(tc.name, func(t *testing.T) {
					tc.q.InclusiveEnd = !tc.exclusive
					ids, total, offset := list(t, d, tc.q)
					if ids != tc.want || total != tc.total || offset != tc.offset {
						t.Fatalf("got %q, total %d, offset %d; want %q, %d, %d", ids, total, offset, tc.want, tc.total, tc.offset)
					}
				})
			}
		})
	}
}

// fillAlldocs writes what golden alldocs/01 and 02 write.
func fillAlldocs(tb testing.TB, d *DB) {
	tb.Helper()
	rev := func(pos int, c string) doc.Path {
		id := ""
		for range 32 {
			id += c
		}
		r, err := doc.ParseRev(fmt.Sprintf("%d-%s", pos, id))
		if err != nil {
			tb.Fatal(err)
		}
		return doc.Path{Start: r.Pos, IDs: []string{r.ID}}
	}
	edits := []shard.Edit{{ID: "gone", Path: rev(2, "6"), Deleted: true, Body: []byte("{}")}}
	for i, id := range []string{"a", "b", "c", "d", "e", "_design/x", "_local/l"} {
		edits = append(edits, shard.Edit{ID: id, Path: rev(1, fmt.Sprint(i+1)), Body: []byte(`{"v":1}`)})
	}
	edits[len(edits)-1].Path = doc.Path{IDs: []string{"1"}}
	for _, r := range update(tb, d, UpdateOptions{}, edits...) {
		if r.Err != nil {
			tb.Fatal(r.Err)
		}
	}
}

type alldocsCase struct {
	name          string
	q             DocsQuery
	exclusive     bool
	want          string
	total, offset int64
}

func alldocsCases() []alldocsCase {
	const all = NoLimit
	return []alldocsCase{
		{name: "all", q: DocsQuery{Limit: all}, want: "_design/x a b c d e", total: 6},
		{name: "descending", q: DocsQuery{Limit: all, Descending: true}, want: "e d c b a _design/x", total: 6},
		{name: "from a key", q: DocsQuery{Limit: all, StartKey: ptr("c")}, want: "c d e", total: 6, offset: 3},
		{name: "up to a key", q: DocsQuery{Limit: all, EndKey: ptr("b")}, want: "_design/x a b", total: 6},
		{name: "up to a key, left out", q: DocsQuery{Limit: all, EndKey: ptr("b")}, exclusive: true, want: "_design/x a", total: 6},
		{name: "between", q: DocsQuery{Limit: all, StartKey: ptr("b"), EndKey: ptr("d")}, want: "b c d", total: 6, offset: 2},
		{name: "keys that are no ids", q: DocsQuery{Limit: all, StartKey: ptr("bb"), EndKey: ptr("cc")}, want: "c", total: 6, offset: 3},
		{name: "start behind the end", q: DocsQuery{Limit: all, StartKey: ptr("d"), EndKey: ptr("b")}, total: 6, offset: 4},
		{name: "descending range", q: DocsQuery{Limit: all, Descending: true, StartKey: ptr("d"), EndKey: ptr("b")}, want: "d c b", total: 6, offset: 1},
		{name: "descending range, end left out", q: DocsQuery{Limit: all, Descending: true, StartKey: ptr("d"), EndKey: ptr("b")}, exclusive: true, want: "d c", total: 6, offset: 1},
		{name: "one key", q: DocsQuery{Limit: all, StartKey: ptr("c"), EndKey: ptr("c")}, want: "c", total: 6, offset: 3},
		{name: "a key that is not there", q: DocsQuery{Limit: all, StartKey: ptr("nothing"), EndKey: ptr("nothing")}, total: 6, offset: 6},
		{name: "a deleted key", q: DocsQuery{Limit: all, StartKey: ptr("gone"), EndKey: ptr("gone")}, total: 6, offset: 6},
		{name: "limit", q: DocsQuery{Limit: 2}, want: "_design/x a", total: 6},
		{name: "a limit of none", q: DocsQuery{Limit: 0}, total: 6},
		{name: "a limit above what there is", q: DocsQuery{Limit: 100, StartKey: ptr("d")}, want: "d e", total: 6, offset: 4},
		{name: "skip", q: DocsQuery{Limit: all, Skip: 4}, want: "d e", total: 6, offset: 4},
		{name: "skip all", q: DocsQuery{Limit: all, Skip: 100}, total: 6, offset: 6},
		{name: "skip and limit", q: DocsQuery{Limit: 2, Skip: 1, StartKey: ptr("b")}, want: "c d", total: 6, offset: 3},
		{name: "descending, skip and limit", q: DocsQuery{Limit: 2, Skip: 1, Descending: true}, want: "d c", total: 6, offset: 1},
		{name: "an empty key to start with", q: DocsQuery{Limit: 1, StartKey: ptr("")}, want: "_design/x", total: 6},
		{name: "an empty key to end with", q: DocsQuery{Limit: all, EndKey: ptr("")}, total: 6},
		{name: "a common beginning", q: DocsQuery{Limit: all, StartKey: ptr("_design/"), EndKey: ptr("_design0")}, want: "_design/x", total: 6},
		{name: "design: all", q: DocsQuery{Namespace: DesignDocs, Limit: all}, want: "_design/x", total: 1},
		{name: "design: a range outside", q: DocsQuery{Namespace: DesignDocs, Limit: all, StartKey: ptr("a")}, total: 1, offset: 1},
		{name: "design: a key before", q: DocsQuery{Namespace: DesignDocs, Limit: all, StartKey: ptr("A"), EndKey: ptr("A")}, total: 1},
		{name: "design: descending", q: DocsQuery{Namespace: DesignDocs, Limit: all, Descending: true}, want: "_design/x", total: 1},
		{name: "design: descending from before", q: DocsQuery{Namespace: DesignDocs, Limit: all, Descending: true, StartKey: ptr("A")}, total: 1, offset: 1},
		{name: "design: skip all", q: DocsQuery{Namespace: DesignDocs, Limit: all, Skip: 10}, total: 1, offset: 1},
		{name: "keys", q: DocsQuery{HasKeys: true, Limit: all, Keys: []string{"c", "a"}}, want: "c a", total: 6, offset: -1},
		{name: "keys: missing, deleted, empty", q: DocsQuery{HasKeys: true, Limit: all, Keys: []string{"a", "none", "gone", ""}}, want: "a none! gone- !", total: 6, offset: -1},
		{name: "keys: repeated", q: DocsQuery{HasKeys: true, Limit: all, Keys: []string{"a", "a", "b", "a"}}, want: "a a b a", total: 6, offset: -1},
		{name: "keys: design and local", q: DocsQuery{HasKeys: true, Limit: all, Keys: []string{"_design/x", "_local/l", "_local/m"}}, want: "_design/x _local/l _local/m!", total: 6, offset: -1},
		{name: "keys: none", q: DocsQuery{HasKeys: true, Limit: all}, total: 6, offset: -1},
		{name: "keys: descending", q: DocsQuery{HasKeys: true, Limit: all, Descending: true, Keys: []string{"a", "c", "b"}}, want: "b c a", total: 6, offset: -1},
		{name: "keys: limit", q: DocsQuery{HasKeys: true, Limit: 2, Keys: []string{"a", "c", "b"}}, want: "a c", total: 6, offset: -1},
		{name: "keys: skip and limit, descending", q: DocsQuery{HasKeys: true, Limit: 1, Skip: 1, Descending: true, Keys: []string{"a", "c", "b"}}, want: "c", total: 6, offset: -1},
		{name: "keys: skip all", q: DocsQuery{HasKeys: true, Limit: all, Skip: 5, Keys: []string{"a", "c"}}, total: 6, offset: -1},
		{name: "keys: a limit of none", q: DocsQuery{HasKeys: true, Keys: []string{"a", "c"}}, total: 6, offset: -1},
		{name: "design keys", q: DocsQuery{Namespace: DesignDocs, HasKeys: true, Limit: all, Keys: []string{"_design/x", "a", "_design/none"}}, want: "_design/x _design/none!", total: 1, offset: -1},
		{name: "local", q: DocsQuery{Namespace: LocalDocs, Limit: all}, want: "_local/l", total: -1, offset: -1},
		{name: "local: a range outside", q: DocsQuery{Namespace: LocalDocs, Limit: all, StartKey: ptr("a")}, total: -1, offset: -1},
		{name: "local keys", q: DocsQuery{Namespace: LocalDocs, HasKeys: true, Limit: all, Keys: []string{"a", "_local/none", "_local/l"}}, want: "_local/none! _local/l", total: -1, offset: -1},
	}
}

// TestKeysAreBounded: the rows of a listing by keys are not all held at once.
func TestKeysAreBounded(t *testing.T) {
	w := start(t, setup{})
	d := w.create("db", CreateOptions{Q: 2})
	bulk(t, d, "a", "b")
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = []string{"a", "b", "none"}[i%3]
	}
	for _, docs := range []bool{true, false} {
		k := newKeyed(t.Context(), &d.listings, DocsQuery{HasKeys: true, Limit: NoLimit, Keys: keys, IncludeDocs: docs})
		largest := 0
		for i := range keys {
			row, err := k.next()
			if err != nil || row == nil || row.ID != keys[i] || (row.Doc != nil) != (docs && !row.Missing) {
				t.Fatalf("row %d: %+v, %v", i, row, err)
			}
			largest = max(largest, len(k.rows))
		}
		if row, err := k.next(); row != nil || err != nil || largest != keyWindow {
			t.Errorf("documents %v: %d at a time; %v, %v", docs, largest, row, err)
		}
	}
}
