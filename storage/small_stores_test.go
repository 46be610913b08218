package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"

	"divan/storage/identity"
	"divan/storage/keyspace"
	"divan/storage/small"
	"divan/storage/storagetest"
)

// ownFiles returns the files of a store but for the one that names it.
func ownFiles(t *testing.T, e *Engine, name string) []string {
	t.Helper()
	files, err := e.env.o.FS.List(e.env.path(name))
	must(t, err)
	return slices.DeleteFunc(files, func(f string) bool { return strings.HasPrefix(f, identity.Prefix) })
}

// amongSmall reports how many bytes a store has among the small ones, and whether it is there.
func amongSmall(t *testing.T, e *Engine, uuid [16]byte) (bytes int64, there bool) {
	t.Helper()
	must(t, e.small.with(func(db *pebble.DB) (err error) {
		bytes, there, err = small.Size(db, uuid)
		return err
	}))
	return bytes, there
}

// TestSmallStore: a store with a few documents has no files of its own, and holds what it is given, open
// and after a restart; it has files when it grows.
func TestSmallStore(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	w := newEdits()
	for restarts := range 3 {
		s, err := e.Acquire(testStore)
		must(t, err)
		b := s.NewBatch()
		w.put(b, edit{id: fmt.Sprint("doc", restarts)})
		w.put(b, edit{id: "again"})
		commit(t, b)
		checkStore(t, s)
		if files := ownFiles(t, e, testStore); len(files) > 0 {
			t.Errorf("a small store has %q", files)
		}
		size, err := e.Catalog().FileSize(testStore)
		if bytes, _ := amongSmall(t, e, s.UUID()); err != nil || size < bytes/2 || size > bytes || size == 0 {
			t.Errorf("FileSize is %d, %v, the batches have %d bytes", size, err, bytes)
		}
		e.Release(s)
		if e.Stats().OpenStores != 2 {
			t.Errorf("%d stores are held, want the small one and the instance of all small ones", e.Stats().OpenStores)
		}
		stop()
		e, stop = startEngine(t, Options{FS: fs})
	}
	s := acquire(t, e, testStore)
	if c := s.Counters(); c.Live != 4 {
		t.Errorf("after restarts: %+v", c)
	}
	snap, err := s.Snapshot()
	must(t, err)
	for n := 0; len(ownFiles(t, e, testStore)) == 0; n++ {
		if n > small.MaxBytes/1000 {
			t.Fatal("it never leaves")
		}
		b := s.NewBatch()
		w.put(b, edit{id: fmt.Sprint("large", n), body: noise(1000, uint64(n))})
		commit(t, b)
		checkStore(t, s)
	}
	if _, ok, err := snap.Record("large0"); ok || err != nil || snap.Counters().Live != 4 {
		t.Errorf("a snapshot of before shows what came later: %v", err)
	}
	must(t, snap.Close())
	if bytes, there := amongSmall(t, e, s.UUID()); there {
		t.Errorf("%d bytes are among the small ones still", bytes)
	}
	w.compare(t, s)
}

// TestWholeBatchIsTooLarge: a first batch that is larger than a small store may be goes into files.
func TestWholeBatchIsTooLarge(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	b := s.NewBatch()
	w.put(b, edit{id: "a", body: noise(2*small.MaxBytes, 1)})
	commit(t, b)
	checkStore(t, s)
	if !s.inst.Opened() {
		t.Error("it is small")
	}
	w.compare(t, s)
}

// TestSmallStoreWithAttachment: tables are ingested into files of the store's own, while batches are
// written by another goroutine.
func TestSmallStoreWithAttachment(t *testing.T) {
	for range rounds(t, 50) {
		s := newStore(t, CreateOptions{CopyID: 1, Small: true})
		w := newEdits()
		var writer sync.WaitGroup
		writer.Go(func() {
			for n := range 10 {
				b := s.NewBatch()
				w.put(b, edit{id: fmt.Sprint(n)})
				commit(t, b)
			}
		})
		data := noise(1000, 1)
		upload(t, s, "a", keyspace.ContentKey{1}, data)
		writer.Wait()
		b := s.NewBatch()
		w.put(b, edit{id: "a", atts: uploadOf(keyspace.ContentKey{1}, data)})
		commit(t, b)
		checkStore(t, s)
		w.compare(t, s)
	}
}

// compare fails when the store does not hold what was put.
func (w *edits) compare(t *testing.T, s *Store) {
	t.Helper()
	got := newEdits()
	got.load(t, s)
	if len(got.recs) != len(w.recs) || got.seq != w.seq {
		t.Errorf("%d documents at %d, want %d at %d", len(got.recs), got.seq, len(w.recs), w.seq)
	}
	for id, rec := range w.recs {
		if have := got.recs[id]; have == nil || have.Winner != rec.Winner || have.Seq != rec.Seq {
			t.Errorf("document %q is %+v, want %+v", id, have, rec)
		}
	}
}

// TestSmallStoreCompacts: bodies of old revisions go, as from any store.
func TestSmallStoreCompacts(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	b := s.NewBatch()
	first := w.put(b, edit{id: "a"})
	commit(t, b)
	for range 5 {
		b := s.NewBatch()
		w.put(b, edit{id: "a"})
		commit(t, b)
	}
	if _, ok, err := s.Reader().Revision("a", first); !ok || err != nil {
		t.Fatalf("before the compaction: %t, %v", ok, err)
	}
	compactStore(t, s)
	if _, ok, err := s.Reader().Revision("a", first); ok || err != nil || s.inst.Opened() {
		t.Errorf("after it: %t, %v", ok, err)
	}
	checkStore(t, s)
}

// TestSmallStoreIsDropped, and nothing of it stays, also when the node stops before it is swept.
func TestSmallStoreIsDropped(t *testing.T) {
	fs := vfs.NewMem()
	e, err := NewEngine(Options{FS: fs, Dir: "data"}) // it sweeps nothing
	must(t, err)
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	old := s.UUID()
	writeOne(t, s)
	must(t, e.Drop(testStore))
	e.Release(s)
	must(t, e.Create(testStore, CreateOptions{CopyID: 2, Small: true}))
	must(t, e.Close())
	e, _ = startEngine(t, Options{FS: fs})
	e.staging.sweep()
	if bytes, there := amongSmall(t, e, old); there {
		t.Errorf("%d bytes of a dropped store are there", bytes)
	}
	s = acquire(t, e, testStore)
	if _, ok, err := s.Reader().Local("_local/x"); ok || err != nil {
		t.Errorf("what was made anew is not empty: %v", err)
	}
}

// TestSmallStoreIsSetAside with all that it has.
func TestSmallStoreIsSetAside(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	writeOne(t, s)
	e.Release(s)
	must(t, e.Orphan(testStore))
	stop()
	must(t, fs.RemoveAll("data/"+SmallDir))
	must(t, fs.MkdirAll("data/shards/00000000-7fffffff", 0o755))
	must(t, fs.Rename("data/"+OrphanedDir+strings.TrimPrefix(testStore, shardsDir), "data/"+testStore)) // as an operator does
	e, _ = startEngine(t, Options{FS: fs})
	s = acquire(t, e, testStore)
	if _, ok, err := s.Reader().Local("_local/x"); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if n := e.Stats().OpenStores; n != 1 {
		t.Errorf("%d stores are open, want one that knows nothing of small ones", n)
	}
}

// TestMissingSmallStores: without the directory of all small stores none of them is taken for an empty one.
func TestMissingSmallStores(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	must(t, e.Create(storeName(1), CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	writeOne(t, s)
	e.Release(s)
	stop()
	must(t, fs.RemoveAll("data/"+SmallDir))
	for _, readOnly := range []bool{true, false} {
		e, stop = startEngine(t, Options{FS: fs, ReadOnly: readOnly})
		for _, name := range []string{testStore, storeName(1)} {
			if s, err := e.Acquire(name); err == nil {
				t.Errorf("%s is there, with %+v", name, s.Counters())
			} else if !readOnly && !errors.Is(err, ErrLost) {
				t.Errorf("%v", err)
			}
		}
		stop()
	}
}

// TestSmallStoreReadOnly: what only looks at a directory finds small stores there.
func TestSmallStoreReadOnly(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	writeOne(t, s)
	e.Release(s)
	stop()
	e, _ = startEngine(t, Options{FS: fs, ReadOnly: true})
	s = acquire(t, e, testStore)
	checkStore(t, s)
	if _, ok, err := s.Reader().Local("_local/x"); !ok || err != nil {
		t.Errorf("%t, %v", ok, err)
	}
	if size, err := e.Catalog().DiskUsage(testStore); err != nil || size == 0 {
		t.Errorf("DiskUsage: %d, %v", size, err)
	}
}

// TestCrashWhileStoreLeaves: a loss of power at any step by which a store leaves the small ones, on a file
// system that keeps no order, leaves all that was acknowledged.
func TestCrashWhileStoreLeaves(t *testing.T) {
	fs := &eventfulFS{CrashFS: storagetest.NewCrashFS(), after: func(string) {}}
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	w := newEdits()
	for n := range 5 {
		b := s.NewBatch()
		w.put(b, edit{id: fmt.Sprint(n)})
		commit(t, b)
	}
	steps := 0
	look := func(string) {
		steps++
		for seed := range uint64(5) {
			must(t, survived(fs.CrashFS, seed, 5))
		}
	}
	fs.after = look
	_, err = s.writable(false)
	must(t, err)
	look("")
	fs.after = func(string) {}
	if steps < 5 {
		t.Errorf("there were %d steps only", steps)
	}
	e.Release(s)
	stop()
	look("")
}

// survived opens what a crash leaves, and opens it once more: it has so many documents, and takes another.
func survived(fs storagetest.CrashFS, seed, want uint64) error {
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(seed%3) * 50, RNG: rand.New(rand.NewPCG(seed, 3))})
	for n := range uint64(2) {
		e, err := NewEngine(Options{Dir: "data", FS: clone})
		if err != nil {
			return err
		}
		s, err := e.Acquire(testStore)
		if err != nil {
			return errors.Join(err, e.Close())
		}
		if live := s.Counters().Live; live != want+n {
			err = fmt.Errorf("%d documents, want %d", live, want+n)
		}
		if err == nil {
			err = s.Check(context.Background(), func(p string) { err = errors.New(p) })
		}
		w := newEdits()
		w.seq = s.Counters().Seq
		b := s.NewBatch()
		w.put(b, edit{id: fmt.Sprint("after", n)})
		c, e2 := b.Apply()
		if e2 == nil {
			e2 = c.Wait()
		}
		e.Release(s)
		if err = errors.Join(err, e2, e.Close()); err != nil {
			return fmt.Errorf("opened %d times: %w", n+1, err)
		}
	}
	return nil
}

// TestFailedSyncOfSmallStores: a log of all small stores that cannot be synced fails what waits for it, and
// what is written while it is so. What was acknowledged is read, by stores that have nothing on the way too,
// and when the disk works again all take writes.
func TestFailedSyncOfSmallStores(t *testing.T) {
	for name, cause := range map[string]error{"broken": errorfs.ErrInjected, "full": syscall.ENOSPC} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var on atomic.Bool
				e, stop := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, cause, func(op errorfs.Op) bool {
					return strings.Contains(op.Path, "data/"+SmallDir) && strings.HasSuffix(op.Path, ".log") &&
						(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
				})})
				defer stop()
				w := newEdits()
				var stores []*Store
				for i := range 2 {
					must(t, e.Create(storeName(i), CreateOptions{CopyID: 1, Small: true}))
					s, err := e.Acquire(storeName(i))
					must(t, err)
					b := s.NewBatch()
					w.put(b, edit{id: fmt.Sprint("kept", i)})
					commit(t, b)
					stores = append(stores, s)
				}
				on.Store(true)
				b := stores[0].NewBatch()
				w.put(b, edit{id: "lost"})
				c, err := b.Apply()
				if err == nil {
					err = c.Wait()
				}
				if err == nil {
					t.Fatal("a batch whose log was not synced was acknowledged")
				}
				if _, ok, err := stores[1].Reader().Record("kept1"); !ok || err != nil {
					t.Errorf("the other store: %t, %v", ok, err)
				}
				e.Release(stores[0])
				on.Store(false)
				<-time.After(retryAfter + time.Second)
				for i := range 2 {
					if i == 0 {
						stores[0], err = e.Acquire(storeName(0))
						must(t, err)
					}
					s := stores[i]
					checkStore(t, s)
					if _, ok, err := s.Reader().Record(fmt.Sprint("kept", i)); !ok || err != nil {
						t.Errorf("store %d: %t, %v", i, ok, err)
					}
					next := newEdits()
					next.seq = s.Counters().Seq
					b := s.NewBatch()
					next.put(b, edit{id: "next"})
					commit(t, b)
					e.Release(s)
				}
			})
		})
	}
}

// makeSmall makes small stores with documents and returns their models.
func makeSmall(t *testing.T, e *Engine, first, n int, docs docsOf) (models []*edits) {
	t.Helper()
	for i := range n {
		must(t, e.Create(storeName(first+i), CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, storeName(first+i))
		w := newEdits()
		putDocs(t, s, w, docs)
		if s.small.view.Load() == nil {
			t.Fatal("it is not small")
		}
		e.Release(s)
		models = append(models, w)
	}
	return models
}

func flushSmall(t *testing.T, e *Engine) {
	t.Helper()
	must(t, e.small.with(func(db *pebble.DB) error { return db.Flush() }))
}

// TestInterruptedLeave: the shared instance fails after a store has its own, and before it is no longer among the
// small ones. Nothing stays there.
func TestInterruptedLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := vfs.NewMem()
		var on atomic.Bool
		e, stop := startEngine(t, Options{FS: failing(base, &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
			return strings.Contains(op.Path, SmallDir) && strings.HasSuffix(op.Path, ".log")
		}), Logger: zap.NewNop()})
		must(t, e.Create(storeName(0), CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, storeName(0))
		uuid, w := s.UUID(), newEdits()
		putDocs(t, s, w, docsOf{20, 10, numbered})
		on.Store(true)
		b := s.NewBatch()
		w.put(b, edit{id: "large", body: noise(2*small.MaxBytes, 1)})
		commit(t, b)
		if !s.inst.Opened() || !s.small.maybe.Load() {
			t.Fatal("it has no instance, or the shared one took the removal")
		}
		e.Release(s)
		on.Store(false)
		stop()
		e, stop = startEngine(t, Options{FS: base})
		defer stop()
		s = take(t, e, storeName(0))
		w.compare(t, s)
		e.Release(s)
		if n, there := amongSmall(t, e, uuid); there {
			t.Errorf("%d bytes are among the small ones still", n)
		}
	})
}

// TestFailedCreationLeavesNothing: a store whose directory cannot be made is not among the small ones.
func TestFailedCreationLeavesNothing(t *testing.T) {
	var on atomic.Bool
	e, _ := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpMkdirAll && strings.HasSuffix(op.Path, "db1.1")
	})})
	makeSmall(t, e, 0, 1, docsOf{1, 1, numbered})
	keys := func() (n int) {
		must(t, e.small.with(func(db *pebble.DB) error {
			it, err := db.NewIter(nil)
			must(t, err)
			for ok := it.First(); ok; ok = it.Next() {
				n++
			}
			return it.Close()
		}))
		return n
	}
	before := keys()
	on.Store(true)
	if err := e.Create(storeName(1), CreateOptions{CopyID: 1, Small: true}); err == nil {
		t.Fatal("it was made")
	}
	if n := keys(); n != before {
		t.Errorf("%d keys, %d before", n, before)
	}
}

// TestLongIDsLeave: what sequences and heads add to a batch counts for whether a store is small.
func TestLongIDsLeave(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w, b := newEdits(), s.NewBatch()
	for i := range 7 {
		w.put(b, edit{id: strings.Repeat("a", 4000) + string(rune('0'+i))})
	}
	commit(t, b)
	if v := s.small.view.Load(); v != nil {
		t.Errorf("it is small with %d bytes, %d allowed", v.Len(), small.MaxBytes)
	}
	w.compare(t, s)
}

// TestSmallStoresOpenByWeight: small stores stay open by what they weigh, not by their number, and those
// with an instance of their own by number.
func TestSmallStoresOpenByWeight(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: 2})
	const n = 300
	makeSmall(t, e, 0, n, docsOf{1, 1, numbered})
	if got := e.Stats().OpenStores; got < n {
		t.Errorf("%d stores are open, want %d", got, n)
	}
	each := e.Stats().SmallBytes / n
	if each < 8<<10 || each > 16<<10 {
		t.Errorf("a small store weighs %d bytes", each)
	}
	for i := range int(maxSmallOpen/each) + 10 - n {
		makeSmall(t, e, n+i, 1, docsOf{1, 1, numbered})
	}
	total, open := e.Stats().SmallBytes, e.Stats().OpenSmall
	if total > maxSmallOpen || total < maxSmallOpen*9/10 {
		t.Errorf("%d small stores weigh %d bytes, at most %d", open, total, maxSmallOpen)
	}
	s := take(t, e, storeName(0)) // closed long since
	b := s.NewBatch()
	newEdits().put(b, edit{id: "large", body: noise(2*small.MaxBytes, 1)})
	commit(t, b)
	e.Release(s)
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if e.cache.mu.lru.open != 2 || s.weight != 0 { // its own and the shared one
		t.Errorf("%d instances are open, the store that left weighs %d", e.cache.mu.lru.open, s.weight)
	}
}
