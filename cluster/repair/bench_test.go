package repair

import (
	"context"
	"fmt"
	"testing"

	"divan/shard"
)

// many writes n documents into all nodes.
func many(b *testing.B, n int, nodes ...*node) {
	b.Helper()
	for at := 0; at < n; at += 500 {
		var edits []shard.Edit
		for i := at; i < min(at+500, n); i++ {
			edits = append(edits, shard.Edit{ID: fmt.Sprintf("document-%08d", i*7919%n), Body: []byte(`{"type":"order","customer":"c-4711","lines":[{"sku":"a","n":1},{"sku":"b","n":2}],"total":47.11}`)})
		}
		for _, node := range nodes {
			if _, err := node.Decide(context.Background(), shard.DecideRequest{Copy: copyName, NewEdits: true, Edits: edits}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCompare is a push that finds nothing missing, per document, when the
// target gives no digest.
func BenchmarkCompare(b *testing.B) {
	const n = 20_000
	from, to := newNode(b, "a@x"), newNode(b, "b@x")
	defer from.stop()
	defer to.stop()
	many(b, n, from, to)
	b.ReportAllocs()
	for b.Loop() {
		p := from.pushTo(to, forgetful{to.copies()})
		p.turn, p.digest = 1<<30, nil
		if o, err := p.run(context.Background()); err != nil || o.upto != n {
			b.Fatal(o, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/doc")
}

// forgetful keeps no checkpoints.
type forgetful struct{ Copies }

func (forgetful) LocalGet(context.Context, string, string) (*shard.LocalDoc, error) {
	return &shard.LocalDoc{Body: []byte(`{}`)}, nil
}

// BenchmarkCompareDigests is the same with the digest: what every update costs
// on each other copy when all is well.
func BenchmarkCompareDigests(b *testing.B) {
	const n = 20_000
	from, to := newNode(b, "a@x"), newNode(b, "b@x")
	defer from.stop()
	defer to.stop()
	many(b, 1, from)
	from.sync(to)
	many(b, n, from, to)
	c := &counting{Copies: to.copies()}
	b.ReportAllocs()
	for b.Loop() {
		p := from.pushTo(to, unwritten{c})
		if o, err := p.run(context.Background()); err != nil || o.more {
			b.Fatal(o, err)
		}
	}
	if c.asked > 100 {
		b.Errorf("%d documents were asked about", c.asked)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/doc")
}

// unwritten takes no checkpoint.
type unwritten struct{ Copies }

func (u unwritten) Follow(_ context.Context, req shard.FollowRequest) ([]error, error) {
	return make([]error, len(req.Edits)), nil
}

// BenchmarkPush is a push of documents that are all missing, per document.
func BenchmarkPush(b *testing.B) {
	const n = 20_000
	from := newNode(b, "a@x")
	defer from.stop()
	many(b, n, from)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		to := newNode(b, "b@x")
		p := from.pushTo(to, to.copies())
		p.turn = 1 << 30
		b.StartTimer()
		if _, err := p.run(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		to.stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/doc")
}

// BenchmarkAtRest is a look at a pair that has nothing to do.
func BenchmarkAtRest(b *testing.B) {
	from, to := newNode(b, "a@x"), newNode(b, "b@x")
	defer from.stop()
	defer to.stop()
	many(b, 1000, from)
	from.sync(to)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := from.pushTo(to, to.copies()).run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUpdated is what an update costs the writer of a copy.
func BenchmarkUpdated(b *testing.B) {
	p := newPlan(b)
	for b.Loop() {
		p.update("shards/00000000-ffffffff/db.1763600000", p.now)
	}
}
