package storage

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"divan/storage/fault"
	"divan/storage/keyspace"
	"divan/storage/pause"
	"divan/storage/small"
	"divan/storage/storagetest"
)

// TestWritesAreReadWhileSmallStoreLeaves: what was acknowledged is what the next read and the next snapshot
// show, while another goroutine has the store leave and readers go on.
func TestWritesAreReadWhileSmallStoreLeaves(t *testing.T) {
	for range rounds(t, 40) {
		s := newStore(t, CreateOptions{CopyID: 1, Small: true, Partitioned: true})
		w := newEdits()
		stop := make(chan struct{})
		var others sync.WaitGroup
		for range 2 {
			others.Go(func() { readUntil(t, s, stop) })
		}
		for i := range 30 {
			if i == 10 {
				others.Go(func() {
					a, err := s.NewAttachment("zz", keyspace.ContentKey{1})
					if err == nil {
						err = a.Abort()
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			b := s.NewBatch()
			w.put(b, edit{id: "a", body: fmt.Appendf(nil, "%d", i)})
			commit(t, b)
			rec, _, err := s.Reader().Record("a")
			if err != nil || rec.Winner != w.recs["a"].Winner {
				t.Fatalf("after edit %d the document is at %v: %v", i, rec.Winner, err)
			}
		}
		close(stop)
		others.Wait()
		checkStore(t, s)
		w.compare(t, s)
	}
}

// readUntil compares counters of moments with what is listed.
func readUntil(t *testing.T, s *Store, stop chan struct{}) {
	t.Helper()
	for {
		select {
		case <-stop:
			return
		default:
		}
		snap, err := s.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		it, err := snap.Docs(Range{})
		n := uint64(0)
		for ok := err == nil && it.First(); ok; ok = it.Next() {
			n++
		}
		if c := snap.Counters(); err != nil || c.Live+c.Deleted != n || it.Close() != nil || snap.Close() != nil {
			t.Errorf("%d documents, %d are listed: %v", c.Live+c.Deleted, n, err)
		}
	}
}

// TestDamagedSmallStore: damage among the small stores is that of those that have it. Others are read, written and
// made, and those that have it can be dropped.
func TestDamagedSmallStore(t *testing.T) { synctest.Test(t, damagedSmallStore) }

func damagedSmallStore(t *testing.T) {
	t.Helper()
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(storeName(0), CreateOptions{CopyID: 1, Small: true}))
	s := take(t, e, storeName(0))
	uuid := s.UUID()
	putDocs(t, s, newEdits(), docsOf{30, 10, numbered})
	e.Release(s)
	flushSmall(t, e)
	stop()
	damageTables(t, fs)
	e, _ = startEngine(t, Options{FS: fs})
	must(t, e.Create(storeName(1), CreateOptions{CopyID: 1, Small: true}))
	neighbour := acquire(t, e, storeName(1))
	for range 3 {
		s, err := e.Acquire(storeName(0))
		for fault.Is(err, fault.Unavailable) && !errors.Is(err, ErrLost) { // a compaction has met the damage, the files are opened anew
			must(t, pause.For(t.Context(), retryAfter))
			s, err = e.Acquire(storeName(0))
		}
		if !errors.Is(err, ErrLost) {
			t.Errorf("what is damaged: %v", err)
			if err == nil {
				e.Release(s)
			}
		}
		writeOne(t, neighbour)
		must(t, e.small.with(func(*pebble.DB) error { return nil }))
	}
	must(t, e.Create(storeName(2), CreateOptions{CopyID: 1, Small: true}))
	must(t, e.Drop(storeName(0)))
	e.staging.sweep()
	if bytes, there := amongSmall(t, e, uuid); there {
		t.Errorf("%d bytes are left of what was damaged and dropped", bytes)
	}
}

// damage flips bits in the first block of a table.
func damage(t *testing.T, fs *vfs.MemFS, path string) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	must(t, err)
	one := make([]byte, 1)
	_, err = f.ReadAt(one, 100)
	must(t, err)
	one[0] ^= 0xff
	_, err = f.WriteAt(one, 100)
	must(t, err)
	must(t, f.Close())
}

// TestSmallStoresOnFullDisk: what is small is read, and says that there is no space to whom writes; nothing
// stops. What is dropped gives its space back, and when there is some all is written again.
func TestSmallStoresOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storagetest.NewSizedFS(vfs.NewMem(), 4<<30)
		e, stop := startEngine(t, Options{FS: disk, IdleClose: time.Minute})
		defer stop()
		for i := range 3 {
			must(t, e.Create(storeName(i), CreateOptions{CopyID: 1, Small: true}))
		}
		one, big := take(t, e, storeName(0)), take(t, e, storeName(2))
		writeOne(t, one)
		putDocs(t, big, newEdits(), docsOf{20000, 1000, numbered})
		e.Release(big)
		<-time.After(5 * time.Minute) // the instance of the small stores is closed, unused
		full := disk.Used() + 100<<10
		disk.Resize(full)
		<-time.After(3 * time.Second)
		if err := e.DiskFull(); !fault.Is(err, fault.InsufficientStorage) {
			t.Fatalf("there is space: %v", err)
		}
		other, err := e.Acquire(storeName(1))
		must(t, err)
		e.Release(other)
		b := one.NewReserveBatch()
		b.PutLocal("_local/y", []byte("{}"))
		commit(t, b) // it may take the last space
		if err := e.Create(storeName(7), CreateOptions{CopyID: 1, Small: true}); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("a new store: %v", err)
		}
		if _, ok, err := one.Reader().Local("_local/x"); !ok || err != nil || one.Err() != nil {
			t.Errorf("the store that was open: %t, %v", ok, err)
		}
		must(t, e.Drop(storeName(1)))
		must(t, e.Drop(storeName(2)))
		<-time.After(5 * time.Minute)
		if used := disk.Used(); used > full/2 {
			t.Errorf("%d of %d bytes are used after the large store was dropped", used, full)
		}
		writeOne(t, one)
		if left, err := disk.List(e.env.path(stagingDir)); err != nil || len(left) > 0 {
			t.Errorf("%q are staged still: %v", left, err)
		}
		e.Release(one)
	})
}

// TestSecondTryToLeave: a store that could not leave is opened anew, and its files are compacted.
func TestSecondTryToLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		e, stop := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
			return strings.HasSuffix(op.Path, "db0.1") && op.Kind == errorfs.OpList // while the instance is opened
		})})
		defer stop()
		must(t, e.Create(storeName(0), CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(storeName(0))
		must(t, err)
		writeOne(t, s)
		on.Store(true)
		if _, err := s.NewAttachment("a", keyspace.ContentKey{1}); err == nil {
			t.Fatal("it left although its directory cannot be read")
		}
		if s.Err() == nil {
			t.Error("the store goes on with an instance that cannot be opened again")
		}
		e.Release(s)
		on.Store(false)
		<-time.After(retryAfter + time.Second)
		s, err = e.Acquire(storeName(0))
		must(t, err)
		a, err := s.NewAttachment("a", keyspace.ContentKey{1})
		must(t, err)
		must(t, a.Abort())
		putDocs(t, s, newEdits(), docsOf{2000, 500, numbered})
		compactStore(t, s)
		checkStore(t, s)
		if _, ok, err := s.Reader().Local("_local/x"); !ok || err != nil {
			t.Errorf("%t, %v", ok, err)
		}
		e.Release(s)
	})
}

// TestCheckpointsStaySmall: a document that is written again and again does not make its store large, nor
// reading it long.
func TestCheckpointsStaySmall(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	for i := range 1000 {
		b := s.NewBatch()
		b.PutLocal("_local/checkpoint", fmt.Appendf(nil, `{"seq":%d,"more":"%0100d"}`, i, i))
		commit(t, b)
	}
	v := s.small.view.Load()
	if s.inst.Opened() || v.Batches() > small.MaxBatches+1 {
		t.Fatalf("%d batches, files: %t", v.Batches(), s.inst.Opened())
	}
	again, err := s.small.read()
	must(t, err)
	if again.Len() != v.Len() || again.Batches() != v.Batches() {
		t.Errorf("read anew: %d bytes in %d batches, want %d in %d", again.Len(), again.Batches(), v.Len(), v.Batches())
	}
	checkStore(t, s)
}

// TestPurgedFromSmallStore: compaction leaves nothing of it.
func TestPurgedFromSmallStore(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	b := s.NewBatch()
	w.put(b, edit{id: "a", body: []byte(`{"secret":"very"}`)})
	commit(t, b)
	b = s.NewBatch()
	w.purge(b, "a")
	commit(t, b)
	before, err := s.FileSize()
	must(t, err)
	compactStore(t, s)
	v, err := s.small.read()
	must(t, err)
	empty, err := s.env.emptyDB()
	must(t, err)
	all := empty.NewBatch()
	must(t, v.AddTo(all))
	if strings.Contains(string(all.Repr()), "very") {
		t.Error("what was purged is there after a compaction")
	}
	if after, err := s.FileSize(); err != nil || after >= before {
		t.Errorf("%d bytes before, %d after it, %v", before, after, err)
	}
	checkStore(t, s)
}

// TestWriteWhileEngineCloses says so, and stops nothing.
func TestWriteWhileEngineCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, stop := startEngine(t, Options{FS: vfs.NewMem()})
		must(t, e.Create(storeName(0), CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(storeName(0))
		must(t, err)
		writeOne(t, s)
		closed := make(chan struct{})
		go func() { defer close(closed); stop() }()
		synctest.Wait()
		b := s.NewBatch()
		b.PutLocal("_local/y", []byte("{}"))
		if _, err := b.Apply(); !fault.Is(err, fault.Closed) || s.Err() != nil {
			t.Errorf("%v; the store: %v", err, s.Err())
		}
		e.Release(s)
		<-closed
	})
}

// TestViewsOfManySmallStores take as much as their content does, no matter which indexes were
// written before.
func TestViewsOfManySmallStores(t *testing.T) {
	storagetest.SkipShort(t)
	e, _ := startEngine(t, Options{FS: vfs.NewMem()})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s := acquire(t, e, testStore)
	x, err := e.Indexes().Acquire(s, "x")
	must(t, err)
	defer e.Indexes().Release(x)
	empty, err := e.env.emptyDB()
	must(t, err)
	one := empty.NewBatch()
	must(t, one.Set([]byte("k"), nil, nil))
	before := heapInUse()
	var batches []*IndexBatch
	for range 100 { // all at the same time, so that as many come back
		b := x.NewBatch(true)
		for i := range 20000 {
			b.Set(fmt.Appendf(nil, "%d", i), nil)
		}
		must(t, b.Commit(context.Background()))
		batches = append(batches, b)
	}
	for _, b := range batches {
		b.Close()
	}
	var views []*small.View
	for range 100 {
		v, err := (*small.View)(nil).With(empty, one, 1)
		must(t, err)
		views = append(views, v)
	}
	if grown := heapInUse() - before; grown > 50<<20 {
		t.Errorf("%d views with a key each: the heap has %d MB more", len(views), grown>>20)
	}
	runtime.KeepAlive(views)
}

// heapInUse returns the bytes that are referred to, without what pools keep.
func heapInUse() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
