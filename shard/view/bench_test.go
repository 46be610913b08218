package view

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/storage/doc"
)

// benchViews are two map functions with built-in reduces.
const benchViews = `{"views":{
	"author":{"map":"function (doc) { if (doc.type === 'post') { emit([doc.author, doc.date], 1); } }","reduce":"_count"},
	"score":{"map":"function (doc) { emit(doc.score, doc.score); }","reduce":"_stats"}}}`

// benchDoc is the body of a document of about 1 KB.
func benchDoc(i int, rnd *rand.Rand) []byte {
	return fmt.Appendf(nil, `{"type":"post","author":"user%03d","date":[2026,%d,%d],"score":%d,"title":"Number %d","tags":["a","b","c%d"],"text":%q}`,
		rnd.IntN(1000), 1+rnd.IntN(12), 1+rnd.IntN(28), rnd.IntN(1000000), i, i%50, strings.Repeat("some text of a post. ", 40))
}

// fill writes documents with ids in a random order.
func (n *node) fill(count int) {
	n.tb.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	order := rnd.Perm(count)
	for from := 0; from < count; from += 1000 {
		var edits []shard.Edit
		for _, i := range order[from:min(from+1000, count)] {
			edits = append(edits, shard.Edit{
				ID: fmt.Sprintf("doc%08d", i), Body: benchDoc(i, rnd),
				Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", i)}},
			})
		}
		_, err := n.local.Decide(context.Background(), shard.DecideRequest{Copy: copyName, Edits: edits, NoPath: true})
		must(n.tb, err)
	}
}

// cpu is the processor time of the process.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU reports the processor time per operation until it is called.
func reportCPU(b *testing.B) func() {
	b.Helper()
	b.ReportAllocs()
	before := cpu(b)
	return func() { b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-us/op") }
}

// BenchmarkBuild builds an index of two views; one operation is a document.
func BenchmarkBuild(b *testing.B) {
	n := startOn(b, vfs.NewMem())
	n.create(false)
	n.fill(b.N)
	d := define(b, benchViews)
	b.ResetTimer()
	before := cpu(b)
	a := n.query(oneRow(d, "score"))
	if a.Total != uint64(b.N) {
		b.Errorf("%d rows", a.Total)
	}
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// oneRow asks for the row of a key that is not there, and the numbers of the head.
func oneRow(d *Definition, view string) Request {
	req := request(d, view)
	req.Ranges = []KeyRange{{Lo: Bound{Key: []byte{0xfe}}}}
	return req
}

// readers are a node with an index of many rows.
func readers(b *testing.B) (*node, *Definition) {
	b.Helper()
	n := startOn(b, vfs.NewMem())
	n.create(false)
	n.fill(200_000)
	d := define(b, benchViews)
	n.query(oneRow(d, "score"))
	return n, d
}

func (n *node) ask(b *testing.B, req Request) {
	b.Helper()
	ctx := context.Background()
	s, err := n.views.Query(ctx, req)
	must(b, err)
	var batch Batch
	for more, left := true, req.Limit; more && left >= 0; left -= len(batch.Rows) {
		more, err = s.Next(&batch)
		must(b, err)
	}
	s.Close()
}

// BenchmarkQuery: a range of 20 rows; a reduction of a narrow and of a wide range;
// a thousand groups; a write and the read that sees it.
func BenchmarkQuery(b *testing.B) {
	n, d := readers(b)
	rnd := rand.New(rand.NewPCG(3, 4))
	score := func(width int) KeyRange {
		lo := rnd.IntN(1000000 - width)
		return KeyRange{Lo: Bound{Key: key(b, fmt.Sprint(lo))}, Hi: Bound{Key: key(b, fmt.Sprint(lo+width))}}
	}
	b.Run("range", func(b *testing.B) {
		defer reportCPU(b)()
		for b.Loop() {
			req := request(d, "score")
			req.Ranges, req.Limit = []KeyRange{score(100)}, 20
			n.ask(b, req)
		}
	})
	for _, width := range []int{1000, 500000} {
		b.Run(fmt.Sprint("reduce", width), func(b *testing.B) {
			defer reportCPU(b)()
			for b.Loop() {
				req := request(d, "score")
				req.Ranges, req.Reduce = []KeyRange{score(width)}, true
				n.ask(b, req)
			}
		})
	}
	b.Run("group", func(b *testing.B) {
		defer reportCPU(b)()
		for b.Loop() {
			req := request(d, "author")
			req.Reduce, req.GroupLevel = true, 1
			n.ask(b, req)
		}
	})
	b.Run("fresh", func(b *testing.B) {
		defer reportCPU(b)()
		for i := 2; b.Loop(); i++ {
			id := fmt.Sprintf("new%d", i)
			_, err := n.local.Decide(context.Background(), shard.DecideRequest{Copy: copyName, NoPath: true, Edits: []shard.Edit{
				{ID: id, Body: benchDoc(i, rnd), Path: doc.Path{Start: 1, IDs: []string{fmt.Sprintf("%032x", i)}}},
			}})
			must(b, err)
			req := request(d, "score")
			req.Ranges, req.Limit = []KeyRange{score(100)}, 20
			n.ask(b, req)
		}
	})
}
