package local_test

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/httpapi/apitest"
	"divan/replicator/local"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/shard"
)

// fill writes documents of about 1 KB.
func (w *world) fill(tb testing.TB, name string, docs int) {
	tb.Helper()
	text := bytes.Repeat([]byte("abcdefgh"), 120)
	db := w.db(tb, name)
	for first := 0; first < docs; first += 1000 {
		edits := make([]shard.Edit, min(1000, docs-first))
		for i := range edits {
			n := first + i
			edits[i] = shard.Edit{ID: fmt.Sprintf("%08x%024x", uint32(n)*2654435761, n), Body: fmt.Appendf(nil, `{"n":%d,"text":"%s"}`, n, text)}
		}
		_, err := db.Update(tb.Context(), cluster.UpdateOptions{NewEdits: true, User: admin()}, edits)
		apitest.Must(tb, err)
	}
}

func (w *world) run(tb testing.TB, from, to, id string) {
	tb.Helper()
	_, err := protocol.Run(tb.Context(), protocol.Options{
		Spec: &spec.Spec{
			Options: spec.Options{
				UseCheckpoints: true, CheckpointInterval: 30 * time.Second, UseBulkGet: true, Workers: 4, BatchSize: 500,
			},
			User: admin(),
		},
		ID:     spec.ID{Base: id},
		Source: w.opener.Open(from, local.Of(admin())), Target: w.opener.Open(to, local.Of(admin())), Logger: zap.NewNop(),
	})
	apitest.Must(tb, err)
}

// used is the time that processors have spent on this process.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	apitest.Must(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report tells how many documents a second were done, and would be with two
// processors that have nothing else to do.
func report(b *testing.B, docs int, used time.Duration) {
	b.Helper()
	n := float64(docs) * float64(b.N)
	b.ReportMetric(n/b.Elapsed().Seconds(), "docs/s")
	b.ReportMetric(2*n/used.Seconds(), "docs/2cpu-s")
}

// BenchmarkReplicate copies documents of 1 KB to an empty database.
func BenchmarkReplicate(b *testing.B) {
	const docs = 40000
	for _, q := range []int{2, 8} {
		b.Run(fmt.Sprintf("q=%d", q), func(b *testing.B) {
			w := newWorld(b, q)
			w.fill(b, "a", docs)
			b.ReportAllocs()
			before := used(b)
			for n := 0; b.Loop(); n++ {
				name := fmt.Sprintf("t%d", n)
				apitest.Must(b, w.Coordinator.CreateDB(b.Context(), name, cluster.CreateOptions{Q: q}))
				w.run(b, "a", name, name)
				b.StopTimer()
				apitest.Must(b, w.Coordinator.DeleteDB(b.Context(), name))
				b.StartTimer()
			}
			report(b, docs, used(b)-before)
		})
	}
}

// BenchmarkCatchUp compares databases that are equal.
func BenchmarkCatchUp(b *testing.B) {
	const docs = 100000
	for _, q := range []int{2, 8} {
		b.Run(fmt.Sprintf("q=%d", q), func(b *testing.B) {
			w := newWorld(b, q)
			w.fill(b, "a", docs)
			w.run(b, "a", "b", "first")
			b.ReportAllocs()
			before := used(b)
			for n := 0; b.Loop(); n++ {
				w.run(b, "a", "b", fmt.Sprint(n))
			}
			report(b, docs, used(b)-before)
		})
	}
}
