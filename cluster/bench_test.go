package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"

	"divan/shard"
)

// stocked returns a database with n documents of about 1 KB.
func stocked(b *testing.B, q, n int) *DB {
	b.Helper()
	d := start(b, setup{}).create("db", CreateOptions{Q: q})
	body := make([]byte, 0, 1100)
	body = append(body, `{"text":"`...)
	for len(body) < 1000 {
		body = append(body, "some words "...)
	}
	body = append(body, `"}`...)
	const batch = 1000
	for i := 0; i < n; i += batch {
		edits := make([]shard.Edit, batch)
		for k := range edits {
			edits[k] = shard.Edit{ID: fmt.Sprintf("document-%08d", i+k), Body: body}
		}
		for _, r := range update(b, d, UpdateOptions{NewEdits: true}, edits...) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	}
	return d
}

func BenchmarkAllDocs(b *testing.B) {
	const rows = 200_000
	for _, q := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("q=%d", q), func(b *testing.B) {
			d := stocked(b, q, rows)
			read := func(b *testing.B, query DocsQuery) int {
				b.Helper()
				listing, err := d.AllDocs(b.Context(), query)
				if err != nil {
					b.Fatal(err)
				}
				defer listing.Close()
				n := 0
				for listing.Next() {
					n++
				}
				if listing.Err() != nil {
					b.Fatal(listing.Err())
				}
				return n
			}
			for _, tc := range []struct {
				name  string
				query DocsQuery
			}{
				{"all", DocsQuery{Limit: NoLimit}},
				{"docs", DocsQuery{Limit: NoLimit, IncludeDocs: true}},
				{"limit=20", DocsQuery{Limit: 20, StartKey: ptr("document-00100000")}},
			} {
				b.Run(tc.name, func(b *testing.B) {
					b.ReportAllocs()
					n := 0
					for b.Loop() {
						n += read(b, tc.query)
					}
					b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
				})
			}
		})
	}
}

func BenchmarkChanges(b *testing.B) {
	const rows = 200_000
	for _, q := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("q=%d", q), func(b *testing.B) {
			d := stocked(b, q, rows)
			b.ReportAllocs()
			b.ResetTimer()
			n, buf := 0, []byte(nil)
			for b.Loop() {
				f, err := d.Changes(b.Context(), ChangesQuery{Limit: NoLimit})
				if err != nil {
					b.Fatal(err)
				}
				for f.Next() {
					buf = f.AppendSeq(buf[:0])
					n++
				}
				if f.Err() != nil {
					b.Fatal(f.Err())
				}
				f.Close()
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkDocument measures reading and writing a single document.
func BenchmarkDocument(b *testing.B) {
	d := stocked(b, 2, 10_000)
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := d.Open(b.Context(), OpenOptions{ID: fmt.Sprintf("document-%08d", i%10_000)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("info", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.Info(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("handle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.handles.c.DB(b.Context(), "db"); err != nil {
				b.Fatal(err)
			}
		}
	})
	var n atomic.Int64 // goes on when the benchmark is run again with more iterations
	b.Run("put", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				e := shard.Edit{ID: fmt.Sprintf("new-%08d", n.Add(1)), Body: []byte(`{"a":1}`)}
				r, err := d.Update(b.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{e})
				if err != nil || r[0].Err != nil {
					b.Error(err, r)
					return
				}
			}
		})
	})
}

// BenchmarkCopies is what several copies add, without a network between them.
func BenchmarkCopies(b *testing.B) {
	w := start(b, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 2})
	var ids []string
	for i := range 10_000 {
		ids = append(ids, fmt.Sprintf("document-%08d", i))
	}
	for i := 0; i < len(ids); i += 1000 {
		bulk(b, d, ids[i:i+1000]...)
	}
	w.settleWrites()
	for _, r := range []int{1, 2, 3} {
		b.Run(fmt.Sprintf("open/r=%d", r), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := d.Open(b.Context(), OpenOptions{ID: ids[i%len(ids)], R: r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	var n atomic.Int64
	for _, q := range []int{1, 2, 3} {
		b.Run(fmt.Sprintf("put/w=%d", q), func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					e := shard.Edit{ID: fmt.Sprintf("new-%08d", n.Add(1)), Body: []byte(`{"a":1}`)}
					r, err := d.Update(b.Context(), UpdateOptions{NewEdits: true, W: q}, []shard.Edit{e})
					if err != nil || r[0].Err != nil {
						b.Error(err, r)
						return
					}
				}
			})
			w.settleWrites()
		})
	}
}
