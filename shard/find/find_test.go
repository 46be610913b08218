package find

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"divan/shard"
	shardindex "divan/shard/index"
	"divan/shard/query"
	"divan/shard/view"
	"divan/storage"
	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const copyName = "shards/00000000-ffffffff/db.1763600000"

// node is a node with its indexes.
type node struct {
	*shard.Local
	indexes *shardindex.Manager
	views   *view.Views
}

// open returns a node with an empty copy, and what closes it.
func open(tb tester, o storage.Options) (l node, stop func()) {
	tb.Helper()
	e, err := storage.NewEngine(o)
	if err != nil {
		tb.Fatal(err)
	}
	l = node{Local: shard.New(shard.Options{Engine: e})}
	l.indexes = shardindex.New(shardindex.Options{Engine: e, Shards: l.Local})
	l.views = view.New(view.Options{Indexes: l.indexes, Shards: l.Local})
	if err := l.Copies.Create(context.Background(), copyName, shard.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	return l, func() {
		if err := errors.Join(l.indexes.Close(), l.Close(), e.Close()); err != nil {
			tb.Fatal(err)
		}
	}
}

func start(tb testing.TB, o storage.Options) node {
	tb.Helper()
	l, stop := open(tb, o)
	tb.Cleanup(stop)
	return l
}

func memory() storage.Options {
	return storage.Options{Dir: "/data", FS: vfs.NewMem(), CacheBytes: 8 << 20}
}

// tester is what tests and properties have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// put writes documents, and returns their revisions.
func put(tb tester, l node, edits ...shard.Edit) []doc.Rev {
	tb.Helper()
	for i := range edits {
		e, err := doc.ParseEnvelope(edits[i].Body)
		if err != nil {
			tb.Fatal(err)
		}
		edits[i].Body = e.Body
	}
	res, err := l.Decide(context.Background(), shard.DecideRequest{Copy: copyName, NewEdits: true, Edits: edits})
	if err != nil {
		tb.Fatal(err)
	}
	var revs []doc.Rev
	for i := range res {
		if res[i].Err != nil {
			tb.Fatal(res[i].Err)
		}
		revs = append(revs, res[i].Rev)
	}
	return revs
}

// all reads an answer: each row as "id text".
func all(tb tester, l node, req Request) (rows []string, figures Figures) {
	tb.Helper()
	req.Copy = copyName
	s, err := Open(context.Background(), l.Local, l.views, req)
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	var b Batch
	for more := true; more; {
		if more, err = s.Next(&b); err != nil {
			tb.Fatal(err)
		}
		for _, r := range b.Rows {
			rows = append(rows, strings.TrimSpace(r.ID+" "+string(r.Doc)))
		}
		figures.Add(b.Figures)
	}
	return rows, figures
}

func TestDocuments(t *testing.T) {
	l := start(t, memory())
	edits := []shard.Edit{{ID: "_design/x", Body: []byte(`{"n":1}`)}}
	for i := range 9 {
		edits = append(edits, shard.Edit{ID: fmt.Sprint("d", i), Body: fmt.Appendf(nil, `{"n":%d,"t":"x"}`, i%3)})
	}
	edits = append(edits, shard.Edit{ID: "A", Body: []byte(`{"n":1}`)})
	revs := put(t, l, edits...)
	put(t, l, shard.Edit{ID: "d4", Parent: revs[5], Deleted: true, Body: []byte(`{"n":1}`)})
	bytesOf := func(s string) []byte { return []byte(s) }
	for _, tc := range []struct {
		req  Request
		want string
	}{
		{Request{Selector: bytesOf(`{"n":1}`), Fields: bytesOf(`["n"]`)}, `A {"n":1}|d1 {"n":1}|d7 {"n":1}`},
		{Request{Selector: bytesOf(`{"n":1}`), Fields: bytesOf(`["n"]`), Desc: true}, `d7 {"n":1}|d1 {"n":1}|A {"n":1}`},
		{Request{Selector: bytesOf(`{"n":1}`), Fields: bytesOf(`["_id","q"]`), Limit: 2}, `A {"_id":"A"}|d1 {"_id":"d1"}`},
		{Request{Selector: bytesOf(`{"_id":"d1"}`)}, `d1 {"_id":"d1","_rev":"` + revs[2].String() + `","n":1,"t":"x"}`},
		{Request{Selector: bytesOf(`{}`), Plain: true, Ranges: []Range{{Hi: bytesOf("A")}, {Lo: bytesOf("d3"), Hi: bytesOf("d5")}, {Lo: bytesOf("d8")}}}, `A|d3|d5|d8`},
		{Request{Selector: bytesOf(`{}`), Plain: true, Desc: true, Ranges: []Range{{Hi: bytesOf("A")}, {Lo: bytesOf("d3"), Hi: bytesOf("d5")}, {Lo: bytesOf("d8")}}}, `d8|d5|d3|A`},
		{Request{Selector: bytesOf(`{}`), Plain: true, After: &Position{ID: "d3"}, Ranges: []Range{{Hi: bytesOf("A")}, {Lo: bytesOf("d3"), Hi: bytesOf("d6")}}}, `d5|d6`},
		{Request{Selector: bytesOf(`{}`), Plain: true, Desc: true, After: &Position{ID: "d5"}, Ranges: []Range{{Hi: bytesOf("A")}, {Lo: bytesOf("d3"), Hi: bytesOf("d6")}}}, `d3|A`},
		{Request{Selector: bytesOf(`{}`), Plain: true, After: &Position{ID: "x"}}, ``},
		{Request{Selector: bytesOf(`{"n":{"$gt":0}}`), Count: true}, ``},
	} {
		rows, figures := all(t, l, tc.req)
		if got := strings.Join(rows, "|"); got != tc.want {
			t.Errorf("%+v: %s, want %s", tc.req, got, tc.want)
		}
		if tc.req.Count && figures != (Figures{Keys: 10, Docs: 10, Matches: 6}) {
			t.Errorf("figures are %+v", figures)
		}
	}
}

// TestRangesAndPositions compares the reading of random ranges, from a random
// position, with what is left of the list of all ids.
func TestRangesAndPositions(t *testing.T) {
	l := start(t, memory())
	var edits []shard.Edit
	var ids []string
	for _, a := range []string{"A", "_design/a", "_design/b", "a", "b", "c", "d", "é"} {
		for _, b := range []string{"", "1", "2"} {
			edits = append(edits, shard.Edit{ID: a + b, Body: []byte(`{}`)})
			if a[0] != '_' {
				ids = append(ids, a+b)
			}
		}
	}
	slices.Sort(ids)
	put(t, l, edits...)
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.SampledFrom([]string{"", "A", "A1", "B", "_design/a", "_design0", "a1", "b", "b11", "c2", "d", "z", "é"})
		var cuts []string
		for range 2 * rapid.IntRange(0, 3).Draw(rt, "ranges") {
			cuts = append(cuts, id.Draw(rt, "cut"))
		}
		slices.Sort(cuts)
		req := Request{Selector: []byte(`{}`), Plain: true, Desc: rapid.Bool().Draw(rt, "desc"), Limit: rapid.IntRange(0, 4).Draw(rt, "limit")}
		for i := 0; i < len(cuts); i += 2 {
			if i == 0 || cuts[i-1] < cuts[i] {
				req.Ranges = append(req.Ranges, Range{Lo: []byte(cuts[i]), Hi: []byte(cuts[i+1])})
			}
		}
		if n := len(req.Ranges); n > 0 && rapid.Bool().Draw(rt, "no end") {
			req.Ranges[n-1].Hi = nil
		}
		if rapid.Bool().Draw(rt, "after") {
			req.After = &Position{ID: id.Draw(rt, "position")}
		}
		var want []string
		for _, id := range ids {
			in := len(req.Ranges) == 0 || slices.ContainsFunc(req.Ranges, func(r Range) bool {
				return id >= string(r.Lo) && (r.Hi == nil || id <= string(r.Hi))
			})
			if a := req.After; a != nil && (id == a.ID || (id > a.ID) == req.Desc) {
				in = false
			}
			if in {
				want = append(want, id)
			}
		}
		if req.Desc {
			slices.Reverse(want)
		}
		if req.Limit > 0 {
			want = want[:min(req.Limit, len(want))]
		}
		if got, _ := all(t, l, req); !slices.Equal(got, want) {
			rt.Fatalf("%+v: %q, want %q", req, got, want)
		}
	})
}

func TestConflictsAndAttachments(t *testing.T) {
	l := start(t, memory())
	rev := put(t, l, shard.Edit{ID: "a", Body: []byte(`{"n":1}`)})[0]
	winner, err := doc.ParseRev("1-ffffffffffffffffffffffffffffffff")
	if err != nil {
		t.Fatal(err)
	}
	other := shard.Edit{ID: "a", Path: doc.Path{Start: 1, IDs: []string{winner.ID}}, Body: []byte(`{"n":2}`)}
	if _, err := l.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: []shard.Edit{other}}); err != nil {
		t.Fatal(err)
	}
	rows, _ := all(t, l, Request{Selector: []byte(`{"_conflicts":{"$size":1}}`), Fields: []byte(`["n","_conflicts"]`), Conflicts: true})
	if want := `a {"n":2,"_conflicts":["` + rev.String() + `"]}`; len(rows) != 1 || rows[0] != want {
		t.Errorf("%q, want %s", rows, want)
	}
	if rows, _ := all(t, l, Request{Selector: []byte(`{"_conflicts":{"$size":1}}`)}); len(rows) != 0 {
		t.Errorf("conflicts without having been asked for: %q", rows)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	l := start(t, memory())
	put(t, l, shard.Edit{ID: "a", Body: []byte(`{}`)})
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Open(ctx, l.Local, l.views, Request{Copy: copyName, Selector: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cancel()
	if _, err := s.Next(&Batch{}); err == nil {
		t.Error("it goes on")
	}
}

// fill writes documents of about 1 KB with 20 members.
func fill(b *testing.B, l node, n int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < n; from += 1000 {
		var edits []shard.Edit
		for i := from; i < min(n, from+1000); i++ {
			body := fmt.Appendf(nil, `{"type":"user","age":%d,"name":"name %d"`, random.IntN(100), i)
			for k := range 17 {
				body = fmt.Appendf(body, `,"member%02d":"%032x some text"`, k, random.Uint64())
			}
			edits = append(edits, shard.Edit{ID: fmt.Sprintf("%032x", random.Uint64()), Body: append(body, '}')})
		}
		put(b, l, edits...)
	}
}

// BenchmarkScan is a selector that matches one document of a hundred, over
// documents of 1 KB.
func BenchmarkScan(b *testing.B) {
	const docs = 50_000
	l := start(b, storage.Options{Dir: b.TempDir(), FS: vfs.Default, CacheBytes: 256 << 20})
	fill(b, l, docs)
	for _, selector := range []string{`{"age":42}`, `{"age":42,"_id":{"$gt":null}}`, `{"member16":{"$gt":"f"},"age":{"$lt":1}}`, `{"nope":{"$exists":true}}`} {
		b.Run(selector, func(b *testing.B) {
			parsed, err := query.Parse([]byte(selector))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				all(b, l, Request{Selector: []byte(selector), Parsed: &Parsed{Selector: parsed}})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/docs, "ns/doc")
		})
	}
}
