package protocol

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/replicator/endpoint"
	"divan/shard"
	"divan/storage/doc"
)

// level is both sides of a replication at no cost of their own: what is
// measured is the engine.
type level struct {
	*store
	rows    []endpoint.Change
	body    []byte
	missing bool // all of it is missing
}

func newLevel(rows int, missing bool) *level {
	l := &level{store: newStore("a"), missing: missing, body: fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", 1000))}
	for i := range rows {
		rev := doc.Rev{Pos: 1, ID: fmt.Sprintf("%016d", i)}
		l.rows = append(l.rows, endpoint.Change{ID: fmt.Sprint(i), Revs: []doc.Rev{rev}})
	}
	return l
}

type levelFeed struct {
	l  *level
	at int
}

func (l *level) Changes(context.Context, endpoint.ChangesQuery) (endpoint.Feed, error) {
	return &levelFeed{l: l}, nil
}

func (f *levelFeed) Next(_ context.Context, rows []endpoint.Change) (int, error) {
	n := copy(rows, f.l.rows[f.at:])
	if f.at += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *levelFeed) Last() endpoint.Seq { return f.l.at(uint64(f.at)) }
func (f *levelFeed) Close()             {}

func (l *level) Missing(_ context.Context, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	if !l.missing {
		return nil, nil
	}
	out := make([]shard.IDMissing, len(ids))
	for i := range ids {
		out[i] = shard.IDMissing{ID: ids[i].ID, Missing: ids[i].Revs}
	}
	return out, nil
}

func (l *level) Fetch(_ context.Context, _ endpoint.FetchOptions, wanted []endpoint.Wanted, take func(*endpoint.Doc, endpoint.Contents) error) error {
	docs := make([]endpoint.Doc, len(wanted))
	for i := range wanted {
		rev := wanted[i].Revs[0]
		docs[i] = endpoint.Doc{ID: wanted[i].ID, Path: doc.Path{Start: rev.Pos, IDs: []string{rev.ID}}, Body: l.body}
		if err := take(&docs[i], nil); err != nil {
			return err
		}
	}
	return nil
}

func (l *level) Write(context.Context, []*endpoint.Doc) ([]endpoint.Refused, error) { return nil, nil }

func BenchmarkEngine(b *testing.B) {
	for _, c := range []struct {
		name    string
		missing bool
	}{{"level", false}, {"missing", true}} {
		b.Run(c.name, func(b *testing.B) {
			const rows = 100_000
			l, s := newLevel(rows, c.missing), request()
			s.UseCheckpoints = false
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(b.Context(), options(l, l, s)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}

// A continuous replication that has nothing to do costs little: what runs while
// there is work is gone.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 300
		a, b := newStore("a"), newStore("b")
		for i := range 1000 {
			a.edit(fmt.Sprint(i), "{}")
		}
		s := request()
		s.Continuous = true
		ctx, cancel := context.WithCancel(t.Context())
		goroutines, before := runtime.NumGoroutine(), inUse()
		var running sync.WaitGroup
		for i := range jobs {
			o := options(a, b, s)
			o.ID.Base = fmt.Sprint(i)
			running.Go(func() { _, _ = Run(ctx, o) }) // ends with ctx
		}
		time.Sleep(2 * s.CheckpointInterval)
		synctest.Wait()
		if a.committed != jobs || b.committed != jobs {
			t.Errorf("%d and %d checkpoints", a.committed, b.committed)
		}
		if n := runtime.NumGoroutine() - goroutines; n < jobs || n > jobs+2 { // the runtime may have begun some of its own
			t.Errorf("%d goroutines", n)
		}
		most := int64(20 << 10)
		if testing.Short() { // the race detector has larger frames
			most *= 2
		}
		if each := (inUse() - before) / jobs; each > most {
			t.Errorf("an idle job takes %d bytes", each)
		} else {
			t.Logf("an idle job takes %d bytes", each)
		}
		cancel()
		running.Wait()
	})
}

// inUse returns the bytes of the heap and of stacks that are in use. A collection
// halves the stacks that have become too large.
func inUse() int64 {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
