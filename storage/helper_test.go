package storage

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap/zaptest"

	"divan/storage/doc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startEngine runs an engine until the test ends, or until the returned
// function is called.
func startEngine(tb testing.TB, o Options) (*Engine, func()) {
	tb.Helper()
	if o.Dir == "" {
		o.Dir = "data"
	}
	if o.Logger == nil {
		o.Logger = zaptest.NewLogger(tb, zaptest.Level(zapErrorLevel))
	}
	e, err := NewEngine(o)
	if err != nil {
		tb.Fatalf("NewEngine: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := e.Run(ctx); err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	var once sync.Once
	stop := func() {
		once.Do(func() {
			if err := e.Close(); err != nil {
				tb.Errorf("Close: %v", err)
			}
			cancel()
			wg.Wait()
		})
	}
	tb.Cleanup(stop)
	return e, stop
}

// allButNewest lets the purge log forget all but the newest entries.
func allButNewest(s *Store, keep uint64) func() (uint64, error) {
	return func() (uint64, error) {
		last := s.Counters().PurgeSeq
		return last - min(keep, last), nil
	}
}

const testStore = "shards/00000000-7fffffff/db.1763600000"

// newStore makes an engine on a file system in memory with one store.
func newStore(tb testing.TB, o CreateOptions) *Store {
	tb.Helper()
	e, _ := startEngine(tb, Options{FS: vfs.NewMem()})
	must(tb, e.Create(testStore, o))
	return acquire(tb, e, testStore)
}

// acquire pins a store until the test ends.
func acquire(tb testing.TB, e *Engine, name string) *Store {
	tb.Helper()
	s, err := e.Acquire(name)
	if err != nil {
		tb.Fatalf("Acquire: %v", err)
	}
	tb.Cleanup(func() { e.Release(s) })
	return s
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// fatalist is what *testing.T and *rapid.T share.
type fatalist interface {
	Helper()
	Fatalf(format string, args ...any)
}

// commit applies a batch and waits.
func commit(t fatalist, b *Batch) {
	t.Helper()
	c, err := b.Apply()
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// checkStore fails the test for every broken invariant.
func checkStore(t fatalist, s *Store) {
	t.Helper()
	var problems []string
	err := s.Check(context.Background(), func(p string) { problems = append(problems, p) })
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	if len(problems) > 0 {
		t.Fatalf("Check found %d problems, first: %s", len(problems), problems[0])
	}
}

// edits is a minimal shard: it turns edits into what a batch takes and keeps
// the records, as the model of what is in the store.
type edits struct {
	seq  uint64
	recs map[string]*doc.Record
}

func newEdits() *edits { return &edits{recs: map[string]*doc.Record{}} }

// load fills the model from a store.
func (w *edits) load(t fatalist, s *Store) {
	t.Helper()
	w.recs = map[string]*doc.Record{}
	w.seq = s.Counters().Seq
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatalf("Snapshot: %v", err)
	}
	it, err := snap.Docs(Range{})
	if err != nil {
		t.Fatalf("Docs: %v", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		rec, err := it.Record()
		if err != nil {
			t.Fatalf("Record: %v", err)
		}
		w.recs[rec.ID] = &rec
	}
	if err := it.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if err := snap.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// edit is one change of a document.
type edit struct {
	id      string
	parent  doc.Rev // zero: the winner, or a first revision
	root    bool    // a first revision even when there are others
	deleted bool
	body    []byte
	atts    []doc.Attachment
}

// put adds the edit to the batch and to the model.
func (w *edits) put(b *Batch, ed edit) doc.Rev {
	old := w.recs[ed.id]
	next := &doc.Record{ID: ed.id}
	if old != nil {
		next.Tree = old.Tree.Clone()
		if ed.parent.IsZero() && !ed.root {
			ed.parent = old.Winner
		}
	}
	if ed.body == nil {
		ed.body = []byte("{}")
	}
	v := doc.Revision{Deleted: ed.deleted, Body: ed.body, Atts: ed.atts}
	rev := doc.Rev{Pos: ed.parent.Pos + 1, ID: doc.NewRevID(ed.deleted, ed.parent, ed.body, ed.atts)}
	path := doc.Path{Start: rev.Pos, IDs: []string{rev.ID}}
	if !ed.parent.IsZero() {
		path.IDs = append(path.IDs, next.Tree.Path(ed.parent, 0).IDs...)
	}
	next.Tree.Merge(path, doc.Node{
		Rev: rev, Deleted: ed.deleted, Stored: true, External: int64(len(ed.body)), Active: int64(len(ed.body)) + 7,
	})
	w.seq++
	next.Seq = w.seq
	winner, _ := next.Tree.Winner()
	next.Winner, next.Deleted = winner.Rev, winner.Deleted
	next.External, next.Active = next.Tree.LeafSizes()
	if old != nil && old.Inline != nil && old.Winner != winner.Rev {
		b.PutRevisionText(ed.id, old.Winner, old.Inline)
	}
	encoded := v.AppendBinary(nil)
	switch {
	case winner.Rev == rev && len(encoded) <= doc.InlineLimit:
		next.Inline = encoded
	case old != nil && winner.Rev == old.Winner:
		next.Inline = old.Inline
		b.PutRevision(ed.id, rev, v)
	default:
		b.PutRevision(ed.id, rev, v)
	}
	b.Put(old, next)
	w.recs[ed.id] = next
	return rev
}

// purge takes a document out, bodies included.
func (w *edits) purge(b *Batch, id string) {
	old := w.recs[id]
	for _, n := range old.Tree.Nodes() {
		b.DeleteRevision(id, n.Rev)
	}
	b.Remove(old)
	delete(w.recs, id)
	w.seq++
	b.Advance(w.seq)
}

// docsOf are n documents, so many in a batch.
type docsOf struct {
	n, perBatch int
	id          func(i int) string
}

// putDocs writes new documents.
func putDocs(tb testing.TB, s *Store, w *edits, d docsOf) {
	tb.Helper()
	body := bytes.Repeat([]byte("x"), 100)
	for i := 0; i < d.n; {
		b := s.NewBatch()
		for range min(d.perBatch, d.n-i) {
			w.put(b, edit{id: d.id(i), body: fmt.Appendf(nil, `{"n":%d,"x":"%s"}`, i, body)})
			i++
		}
		commit(tb, b)
	}
}

func numbered(i int) string { return fmt.Sprintf("doc-%08d", i) }
