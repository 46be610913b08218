package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage"
	"divan/storage/doc"
)

// startDisk is start on the disk, so that benchmarks pay for syncs.
func startDisk(b *testing.B) *node {
	b.Helper()
	e, err := storage.NewEngine(storage.Options{Dir: b.TempDir(), FS: vfs.Default, CacheBytes: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	n := &node{t: b, engine: e, Local: New(Options{Engine: e})}
	n.create(CreateOptions{})
	b.Cleanup(n.stop)
	return n
}

// parallel runs fn b.N times on that many goroutines.
func parallel(b *testing.B, workers int, fn func(i int)) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				fn(int(i))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func benchID(i int) string { return fmt.Sprintf("%032x", uint64(i)*0x9e3779b97f4a7c15) }

// BenchmarkPut is 64 clients that each create one document of 1 KB after the
// other.
func BenchmarkPut(b *testing.B) {
	for _, workers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			n := startDisk(b)
			text := body(1000)
			parallel(b, workers, func(i int) {
				res, err := n.Decide(context.Background(), DecideRequest{
					Copy: copyName, NewEdits: true, NoPath: true, Edits: []Edit{{ID: benchID(i), Body: text}},
				})
				if err != nil || res[0].Err != nil {
					b.Error(err, res)
				}
			})
		})
	}
}

// BenchmarkUpdate is 64 clients that each update documents of 1 KB of their
// own.
func BenchmarkUpdate(b *testing.B) {
	for _, workers := range []int{1, 64} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			n := startDisk(b)
			const docs = 20000
			text := body(1000)
			revs := make([]doc.Rev, docs)
			locks := make([]sync.Mutex, docs)
			fill(b, n, docs, text, revs)
			parallel(b, workers, func(int) {
				at := rand.IntN(docs)
				locks[at].Lock()
				defer locks[at].Unlock()
				res, err := n.Decide(context.Background(), DecideRequest{
					Copy: copyName, NewEdits: true, NoPath: true,
					Edits: []Edit{{ID: benchID(at), Parent: revs[at], Body: text}},
				})
				if err != nil || res[0].Err != nil {
					b.Error(err, res)
					return
				}
				revs[at] = res[0].Rev
			})
		})
	}
}

func fill(b *testing.B, n *node, docs int, text []byte, revs []doc.Rev) {
	b.Helper()
	for from := 0; from < docs; from += 1000 {
		edits := make([]Edit, min(1000, docs-from)) // of different content, so that no two revisions are alike
		for i := range edits {
			edits[i] = Edit{ID: benchID(from + i), Body: append([]byte(`{"id":"`+benchID(from+i)+`",`), text[1:]...)}
		}
		for i, r := range n.edits(true, edits...) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
			if revs != nil {
				revs[from+i] = r.Rev
			}
		}
	}
}

// BenchmarkBulk is 8 clients with requests of 500 documents of 1 KB.
func BenchmarkBulk(b *testing.B) {
	n := startDisk(b)
	text := body(1000)
	parallel(b, 8, func(i int) {
		edits := make([]Edit, 500)
		for k := range edits {
			edits[k] = Edit{ID: benchID(i*500 + k), Body: text}
		}
		if _, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, NewEdits: true, NoPath: true, Edits: edits}); err != nil {
			b.Error(err)
		}
	})
	b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "docs/s")
}

func BenchmarkOpen(b *testing.B) {
	n := startDisk(b)
	const docs = 20000
	fill(b, n, docs, body(1000), nil)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := n.Open(context.Background(), OpenRequest{Copy: copyName, ID: benchID(i % docs)}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAllDocs reports rows into the batch per second.
func BenchmarkAllDocs(b *testing.B) {
	for _, include := range []bool{false, true} {
		b.Run(fmt.Sprintf("docs=%v", include), func(b *testing.B) {
			n := startDisk(b)
			const docs = 100000
			fill(b, n, docs, body(200), nil)
			var batch RowBatch
			b.ReportAllocs()
			b.ResetTimer()
			rows := 0
			for range b.N {
				s, err := n.AllDocs(context.Background(), DocsRequest{Copy: copyName, IncludeDocs: include})
				if err != nil {
					b.Fatal(err)
				}
				for more := true; more; {
					if more, err = s.Next(&batch); err != nil {
						b.Fatal(err)
					}
					rows += len(batch.Rows)
				}
				s.Close()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkAllDocsLimit is a page of 20 rows, the first or from the middle.
func BenchmarkAllDocsLimit(b *testing.B) {
	for _, middle := range []bool{false, true} {
		b.Run(fmt.Sprintf("middle=%v", middle), func(b *testing.B) {
			n := startDisk(b)
			const docs = 100000
			fill(b, n, docs, body(200), nil)
			var batch RowBatch
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				req := DocsRequest{Copy: copyName, Limit: 20}
				if middle {
					req.Lo = benchID(i % docs)
				}
				s, err := n.AllDocs(context.Background(), req)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Next(&batch); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

// BenchmarkChanges reports rows into the batch per second.
func BenchmarkChanges(b *testing.B) {
	for _, include := range []bool{false, true} {
		b.Run(fmt.Sprintf("docs=%v", include), func(b *testing.B) {
			n := startDisk(b)
			const docs = 100000
			fill(b, n, docs, body(200), nil)
			var batch ChangeBatch
			b.ReportAllocs()
			b.ResetTimer()
			rows := 0
			for range b.N {
				s, err := n.Changes(context.Background(), ChangesRequest{Copy: copyName, IncludeDocs: include})
				if err != nil {
					b.Fatal(err)
				}
				for more := true; more; {
					if more, err = s.Next(&batch); err != nil {
						b.Fatal(err)
					}
					rows += len(batch.Rows)
				}
				s.Close()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
