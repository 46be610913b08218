package storage

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
	"divan/storage/keyspace"
)

// Benchmarks run on the real disk: what counts is the number of syncs.

func benchStore(b *testing.B) *Store {
	b.Helper()
	e, _ := startEngine(b, Options{Dir: b.TempDir(), FS: vfs.Default})
	must(b, e.Create(testStore, CreateOptions{}))
	return acquire(b, e, testStore)
}

// cpuMetric reports processor time per operation, which other programs on the
// machine do not change. The returned function ends the measurement.
func cpuMetric(b *testing.B) func() {
	b.Helper()
	start := cpuTime(b)
	return func() {
		b.ReportMetric(float64((cpuTime(b)-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fill loads n documents of about 1 KB with random-looking ids.
func fill(b *testing.B, s *Store, n int) (ids []string) {
	b.Helper()
	w := newEdits()
	body := benchBody()
	rng := rand.New(rand.NewPCG(1, 1))
	for len(ids) < n {
		batch := s.NewBatch()
		for range 1000 {
			id := fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64())
			ids = append(ids, id)
			w.put(batch, edit{id: id, body: body})
		}
		commit(b, batch)
	}
	return ids
}

func benchBody() []byte {
	var text bytes.Buffer
	text.WriteString(`{"type":"bench"`)
	for i := 0; text.Len() < 1000; i++ {
		fmt.Fprintf(&text, `,"field%02d":"value %d of the benchmark"`, i, i*7919)
	}
	text.WriteString("}")
	return text.Bytes()
}

// pipeline is a shard's writer reduced to what storage costs: waiting edits
// become one batch, which syncs while the next is built.
type pipeline struct {
	s     *Store
	queue chan *pipelined
	wg    sync.WaitGroup
}

type pipelined struct {
	ed   edit
	done chan struct{}
}

func startPipeline(s *Store) *pipeline {
	p := &pipeline{s: s, queue: make(chan *pipelined, 512)}
	type round struct {
		c       *Commit
		waiters []*pipelined
	}
	rounds := make(chan round, 4)
	p.wg.Go(func() {
		for r := range rounds {
			if err := r.c.Wait(); err != nil {
				panic(err)
			}
			for _, w := range r.waiters {
				w.done <- struct{}{}
			}
		}
	})
	p.wg.Go(func() {
		defer close(rounds)
		w := newEdits()
		for first := range p.queue {
			waiters := []*pipelined{first}
			for more := true; more && len(waiters) < 512; {
				select {
				case next, ok := <-p.queue:
					if more = ok; ok {
						waiters = append(waiters, next)
					}
				default:
					more = false
				}
			}
			b := s.NewBatch()
			for _, e := range waiters {
				if _, _, err := s.Reader().ProbeTip(e.ed.id); err != nil {
					panic(err)
				}
				w.put(b, e.ed)
				delete(w.recs, e.ed.id) // every edit is a new document
			}
			c, err := b.Apply()
			if err != nil {
				panic(err)
			}
			rounds <- round{c, waiters}
		}
	})
	return p
}

func (p *pipeline) stop() {
	close(p.queue)
	p.wg.Wait()
}

// BenchmarkCommit: durable edits by clients that each wait for theirs.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct{ clients, stores int }{{1, 1}, {64, 1}, {64, 2}, {64, 8}, {1, 2}} {
		b.Run(fmt.Sprintf("clients=%d/stores=%d", c.clients, c.stores), func(b *testing.B) {
			e, _ := startEngine(b, Options{Dir: b.TempDir(), FS: vfs.Default})
			var pipes []*pipeline
			for i := range c.stores {
				name := fmt.Sprintf("shards/%d/db.1", i)
				must(b, e.Create(name, CreateOptions{}))
				pipes = append(pipes, startPipeline(acquire(b, e, name)))
			}
			body := benchBody()
			var n atomic.Int64
			var clients sync.WaitGroup
			b.ResetTimer()
			end := cpuMetric(b)
			for client := range c.clients {
				clients.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(client), 1))
					p := &pipelined{done: make(chan struct{}, 1)}
					for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
						p.ed = edit{id: fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64()), body: body}
						pipes[rng.IntN(len(pipes))].queue <- p
						<-p.done
					}
				})
			}
			clients.Wait()
			b.StopTimer()
			end()
			for _, p := range pipes {
				p.stop()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "docs/s")
		})
	}
}

// BenchmarkBulk: batches of 1000 new documents, one after the other.
func BenchmarkBulk(b *testing.B) {
	for _, order := range []string{"ascending", "random"} {
		b.Run(order, func(b *testing.B) {
			s := benchStore(b)
			w, body := newEdits(), benchBody()
			rng := rand.New(rand.NewPCG(1, 1))
			var last *Commit
			n := 0
			defer cpuMetric(b)()
			for b.Loop() {
				batch := s.NewBatch()
				for range 1000 {
					n++
					id := fmt.Sprintf("%032d", n)
					if order == "random" {
						id = fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64())
					}
					if _, _, err := s.Reader().ProbeTip(id); err != nil {
						b.Fatal(err)
					}
					w.put(batch, edit{id: id, body: body})
					delete(w.recs, id)
				}
				c, err := batch.Apply()
				must(b, err)
				if last != nil {
					must(b, last.Wait())
				}
				last = c
			}
			must(b, last.Wait())
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "docs/s")
		})
	}
}

// BenchmarkHotRecord: the record of one of a thousand documents that are written again and
// again, among 200,000, found by Record and by ProbeTip.
func BenchmarkHotRecord(b *testing.B) {
	s := benchStore(b)
	ids := fill(b, s, 50_000)[:1000]
	w := newEdits()
	w.load(b, s)
	for i := range 20 {
		batch := s.NewBatch()
		for _, id := range ids {
			w.put(batch, edit{id: id, body: []byte(`{"a":"` + strings.Repeat("x", 900+i) + `"}`)})
		}
		c, err := batch.Apply()
		must(b, err)
		must(b, c.Wait())
	}
	for name, look := range map[string]func(string) (doc.Record, bool, error){"record": s.Reader().Record, "probe": s.Reader().ProbeTip} {
		b.Run(name, func(b *testing.B) {
			defer cpuMetric(b)()
			for i := 0; b.Loop(); i++ {
				if _, ok, err := look(ids[i*79%len(ids)]); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// BenchmarkRead: what one row, one lookup, one count costs in a store of
// 200,000 documents of 1 KB.
func BenchmarkRead(b *testing.B) {
	s := benchStore(b)
	ids := fill(b, s, 50_000)
	must(b, s.inst.DB().Flush())
	b.Run("docs", func(b *testing.B) { benchDocs(b, s) })
	b.Run("changes", func(b *testing.B) { benchChanges(b, s) })
	b.Run("head", func(b *testing.B) {
		var h doc.Head
		defer cpuMetric(b)()
		for i := 0; b.Loop(); i++ {
			if ok, err := s.Reader().Head(ids[i*7919%len(ids)], &h); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("record", func(b *testing.B) {
		defer cpuMetric(b)()
		for i := 0; b.Loop(); i++ {
			if _, ok, err := s.Reader().Record(ids[i*7919%len(ids)]); !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("record-missing", func(b *testing.B) {
		defer cpuMetric(b)()
		for i := 0; b.Loop(); i++ {
			if _, ok, err := s.Reader().ProbeTip(ids[i*7919%len(ids)][:20]); ok || err != nil {
				b.Fatal(ok, err)
			}
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		defer cpuMetric(b)()
		for b.Loop() {
			snap, err := s.Snapshot()
			must(b, err)
			must(b, snap.Close())
		}
	})
	b.Run("page-of-20", func(b *testing.B) { benchPage(b, s, ids) })
	b.Run("count-docs", func(b *testing.B) {
		snap, err := s.Snapshot()
		must(b, err)
		defer cpuMetric(b)()
		for i := 0; b.Loop(); i++ {
			if _, err := snap.CountDocs(ids[i*7919%len(ids)]); err != nil {
				b.Fatal(err)
			}
		}
		must(b, snap.Close())
	})
	b.Run("count-changes", func(b *testing.B) {
		snap, err := s.Snapshot()
		must(b, err)
		defer cpuMetric(b)()
		for i := 0; b.Loop(); i++ {
			if _, err := snap.CountChanges(uint64(i * 7919 % len(ids))); err != nil {
				b.Fatal(err)
			}
		}
		must(b, snap.Close())
	})
}

func benchDocs(b *testing.B, s *Store) {
	b.Helper()
	snap, err := s.Snapshot()
	must(b, err)
	it, err := snap.Docs(Range{})
	must(b, err)
	rows, ok := 0, false
	b.ReportAllocs()
	defer cpuMetric(b)()
	for b.Loop() {
		if ok {
			ok = it.Next()
		} else {
			ok = it.First()
		}
		if ok && it.Head().Seq != 0 {
			rows++
		}
	}
	must(b, it.Close())
	must(b, snap.Close())
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

func benchChanges(b *testing.B, s *Store) {
	b.Helper()
	snap, err := s.Snapshot()
	must(b, err)
	it, err := snap.Changes(SeqRange{})
	must(b, err)
	rows, ok := 0, false
	b.ReportAllocs()
	defer cpuMetric(b)()
	for b.Loop() {
		if ok {
			ok = it.Next()
		} else {
			ok = it.First()
		}
		if ok && it.Change().Seq != 0 {
			rows++
		}
	}
	must(b, it.Close())
	must(b, snap.Close())
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

func benchPage(b *testing.B, s *Store, ids []string) {
	b.Helper()
	defer cpuMetric(b)()
	for i := 0; b.Loop(); i++ {
		snap, err := s.Snapshot()
		must(b, err)
		it, err := snap.Docs(Range{Lo: ids[i*7919%len(ids)]})
		must(b, err)
		n := 0
		for ok := it.First(); ok && n < 20; ok = it.Next() {
			n++
		}
		must(b, it.Close())
		must(b, snap.Close())
	}
}

// BenchmarkAttachment: 256 MB in and out.
func BenchmarkAttachment(b *testing.B) {
	const size = 256 << 20
	data := make([]byte, 1<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(data)
	b.Run("write", func(b *testing.B) {
		s := benchStore(b)
		b.SetBytes(size)
		n := 0
		defer cpuMetric(b)()
		for b.Loop() {
			n++
			w, err := s.NewAttachment("doc", keyspace.ContentKey{byte(n), byte(n >> 8)})
			must(b, err)
			for range size / len(data) {
				if _, err := w.Write(data); err != nil {
					b.Fatal(err)
				}
			}
			must(b, w.Close())
			batch := s.NewBatch()
			batch.DeleteAttachment("doc", keyspace.ContentKey{byte(n), byte(n >> 8)})
			commit(b, batch)
		}
	})
	b.Run("read", func(b *testing.B) {
		s := benchStore(b)
		w, err := s.NewAttachment("doc", keyspace.ContentKey{1})
		must(b, err)
		for range size / len(data) {
			_, err := w.Write(data)
			must(b, err)
		}
		must(b, w.Close())
		b.SetBytes(size)
		defer cpuMetric(b)()
		for b.Loop() {
			r, err := s.OpenAttachment("doc", keyspace.ContentKey{1}, 0, -1)
			must(b, err)
			if n, err := io.Copy(io.Discard, r); n != size || err != nil {
				b.Fatal(n, err)
			}
			must(b, r.Close())
		}
	})
}

// BenchmarkCreate: a new database, two stores and one document in one of them.
func BenchmarkCreate(b *testing.B) {
	e, _ := startEngine(b, Options{Dir: b.TempDir(), FS: vfs.Default})
	n := 0
	defer cpuMetric(b)()
	for b.Loop() {
		n++
		for shard := range 2 {
			must(b, e.Create(fmt.Sprintf("shards/%d/db%d.1", shard, n), CreateOptions{}))
		}
		s, err := e.Acquire(fmt.Sprintf("shards/0/db%d.1", n))
		must(b, err)
		batch := s.NewBatch()
		newEdits().put(batch, edit{id: "a", body: []byte(`{"a":1}`)})
		commit(b, batch)
		e.Release(s)
	}
}
