package search

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard/index"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// TestMemory: what a query would need too much for is refused, and what it needs of a chunk
// is given back behind it.
func TestMemory(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.indexes.chunkBytes = 1
	n.create()
	for i := range 3 {
		n.put(fmt.Sprint("d", i), &content{Text: "word", Tags: []string{strings.Repeat("x", 10_000)}})
		n.expectTotal("t:word", uint64(i+1)) // each in its chunk
	}
	clauses := func(groups, each int) string {
		return strings.Repeat("("+strings.Repeat("t:wo* ", each)+") ", groups)
	}
	n.expectTotal(clauses(4, 1000), 3) // 32 MB for each chunk
	if _, err := n.indexes.Query(t.Context(), n.request(clauses(10, 1000))); !fault.Is(err, fault.BadRequest) {
		t.Errorf("10,000 prefixes: %v", err)
	}
	for _, change := range []func(*Request){
		func(r *Request) { r.Counts = []string{"tag"} },
		func(r *Request) { r.Sort = []Sort{{By: ByString, Field: "tag"}} },
		func(r *Request) { r.Group = &Group{Field: "tag", Limit: 10} },
		func(*Request) {},
	} {
		req := n.request("*:*")
		change(&req)
		use, err := n.indexes.manager.Acquire(t.Context(), copyName, n.spec())
		must(t, err)
		snap, err := use.Index.Snapshot()
		must(t, err)
		turn := n.indexes.turns.newTurn(t.Context(), "x")
		e, err := newEvaluation(turn, snap, use.Kind().(*searchIndex).def, syntax.All{}, &req)
		must(t, err)
		e.scan.space = space{left: 100}
		if _, err := e.run(); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%v, %v, %v with 100 bytes: %v", req.Counts, req.Sort, req.Group, err)
		}
		turn.end()
		snap.Close()
		use.Release()
	}
}

// spec names the index of request.
func (n *world) spec() index.Spec {
	return index.Spec{Name: indexName, Open: func(ctx context.Context) (index.Kind, bool, error) {
		return n.indexes.kind(ctx, copyName, signature, []byte(definition))
	}}
}

// TestCanceled: a query ends with its context.
func TestCanceled(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.putAll(10)
	n.expectTotal("*:*", 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := n.request("*:*")
	req.Stale = true
	if _, err := n.indexes.Query(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("a query whose context ended: %v", err)
	}
}

// TestDamage: an index with any value that makes no sense is built anew, and answers as it
// did.
func TestDamage(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.indexes.chunkBytes = 1
	n.create()
	for i := range 6 {
		n.put(fmt.Sprint("d", i), &content{Text: "word other", Tags: []string{"x"}, Numbers: []float64{1}})
		n.expectTotal("t:word", uint64(i+1))
	}
	req := n.request(`t:word t:"word other" t:wor* t:wprd~ n:1 _id:d*`)
	req.Counts, req.Ranges = []string{"tag"}, []FieldRanges{{"n", []NumberRange{exactly(1)}}}
	req.Sort = []Sort{{By: ByString, Field: "tag"}, {By: ByNumber, Field: "n"}, {By: ByScore}}
	want, err := n.indexes.Query(t.Context(), req)
	must(t, err)
	for _, space := range "bcdeipst" {
		for _, value := range []string{"", "\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x80\x80\x05\x05\x05"} {
			if strings.ContainsRune("cdips", space) && value == "" || space == 'd' && len(value)%2 == 0 {
				continue // nothing, which is well formed
			}
			keys := n.damage(t, byte(space), value)
			got, err := n.indexes.Query(t.Context(), req)
			if err != nil {
				t.Fatalf("%d values of %c that are %q: %v", keys, space, value, err)
			}
			got.Waited = want.Waited
			if keys > 0 && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d values of %c that are %q: %v in place of %v", keys, space, value, got, want)
			}
		}
	}
}

// TestOldFormat: an index of another format is empty until it is built anew.
func TestOldFormat(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("d", &content{Text: "word"})
	n.expectTotal("t:word", 1)
	n.damage(t, 't', "\x02\x01\x01\x00")
	if info, err := n.indexes.Info(t.Context(), copyName, signature, []byte(definition)); err != nil || !info.Exists || info.Live != 0 || info.Seq != 0 {
		t.Errorf("an index of another format has %+v, %v", info, err)
	}
	n.expectTotal("t:word", 1)
	n.damage(t, 't', "\x02\x01\x01\x00")
	n.expectTotal("t:word", 1)
}

// damage sets all values of a space of keys.
func (n *world) damage(t *testing.T, space byte, value string) (keys int) {
	t.Helper()
	s, err := n.engine.Acquire(copyName)
	must(t, err)
	defer n.engine.Release(s)
	x, err := n.engine.Indexes().Acquire(s, indexName.String())
	must(t, err)
	defer n.engine.Indexes().Release(x)
	b := x.NewBatch(false)
	defer b.Close()
	snap, err := x.Snapshot()
	must(t, err)
	defer snap.Close()
	it, err := snap.Iterate([]byte{space}, []byte{space + 1})
	must(t, err)
	for ok := it.First(); ok; ok = it.Next() {
		b.Set(append([]byte{}, it.Key()...), []byte(value))
		keys++
	}
	must(t, it.Close())
	must(t, b.Commit(t.Context()))
	return keys
}

// brief is a context that ends when it was asked so many times.
type brief struct {
	context.Context
	left int
}

func (c *brief) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// evaluate answers a request from the index as it is.
func (n *world) evaluate(ctx context.Context, req *Request) (*Answer, error) {
	n.t.Helper()
	use, err := n.indexes.manager.Acquire(context.WithoutCancel(ctx), copyName, n.spec())
	must(n.t, err)
	defer use.Release()
	snap, err := use.Index.Snapshot()
	must(n.t, err)
	defer snap.Close()
	turn := n.indexes.turns.newTurn(ctx, "x")
	defer turn.end()
	q, err := syntax.Parse(req.Query, syntax.Search)
	must(n.t, err)
	e, err := newEvaluation(turn, snap, use.Kind().(*searchIndex).def, q, req)
	must(n.t, err)
	return e.run()
}

// TestLongPhrase: a long phrase in a long document takes no memory for each of its words at
// each of their places, and ends with its context.
func TestLongPhrase(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("d", &content{Text: strings.Repeat("word ", 40_000)})
	n.expectTotal("t:word", 1)
	for _, slop := range []string{"", "~3"} {
		req := n.request(`t:"` + strings.Repeat("word ", 500) + `"` + slop)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a, err := n.evaluate(t.Context(), &req)
		runtime.ReadMemStats(&after)
		if err != nil || a.Total != 1 {
			t.Fatalf("500 words%s: %v, %v", slop, a, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("500 words%s in 40,000 take %d MB", slop, took>>20)
		}
		if _, err := n.evaluate(&brief{t.Context(), 10}, &req); !errors.Is(err, context.Canceled) {
			t.Errorf("500 words%s in 40,000 when the context ends: %v", slop, err)
		}
	}
}

// TestParts: a request with too many parts is refused.
func TestParts(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("d", &content{Text: "word", Tags: []string{"x"}, Numbers: []float64{1}})
	n.expectTotal("t:word", 1)
	names := func(n int) []string { return slices.Repeat([]string{"tag"}, n) }
	for name, with := range map[string]func(r *Request, n int){
		"sort":       func(r *Request, n int) { r.Sort = slices.Repeat([]Sort{{By: ByID}}, n) },
		"group sort": func(r *Request, n int) { r.Group = &Group{Field: "tag", Sort: slices.Repeat([]Sort{{By: ByID}}, n)} },
		"counts":     func(r *Request, n int) { r.Counts = names(n) },
		"ranges":     func(r *Request, n int) { r.Ranges = slices.Repeat([]FieldRanges{{Field: "n"}}, n) },
		"all ranges": func(r *Request, n int) {
			r.Ranges = slices.Repeat([]FieldRanges{{"n", slices.Repeat([]NumberRange{exactly(1)}, 20)}}, n/2)
		},
		"drilldown":  func(r *Request, n int) { r.Drilldown = slices.Repeat([]Drilldown{{Field: "tag"}}, n) },
		"highlights": func(r *Request, n int) { r.Highlight = &Highlight{Fields: names(n), Number: 1} },
	} {
		req := n.request("t:word")
		with(&req, MaxParts)
		a, err := n.indexes.Query(t.Context(), req)
		must(t, err)
		if a.Total != 1 {
			t.Errorf("%s with %d parts: %d documents", name, MaxParts, a.Total)
		}
		with(&req, MaxParts+2)
		if _, err := n.indexes.Query(t.Context(), req); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s with %d parts: %v", name, MaxParts+2, err)
		}
	}
}

// TestFinite: what hits are ordered by is a number that JSON has.
func TestFinite(t *testing.T) {
	n := start(t, vfs.NewMem())
	defer n.stop()
	n.create()
	n.put("d", &content{Text: "word", Place: []float64{1.7e308, 10}})
	boost := ")^3" + strings.Repeat("0", 38)
	for q, sort := range map[string][]Sort{
		strings.Repeat("(", 10) + "t:word t:other" + strings.Repeat(boost+" t:other", 10): nil,
		"t:word": {{By: ByDistance, Field: "lon", LatitudeField: "lat", Longitude: -1.7e308, Latitude: 1}},
	} {
		req := n.request(q)
		req.Sort = sort
		a, err := n.indexes.Query(t.Context(), req)
		must(t, err)
		if v := a.Hits[0].Order[0].Number; math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%s by %v: %v", q, sort, v)
		}
	}
}
