package storage

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/instance"
)

func storeName(i int) string { return fmt.Sprintf("shards/00000000-ffffffff/db%d.1", i) }

// writeOne gives a store its own instance.
func writeOne(tb testing.TB, s *Store) {
	tb.Helper()
	b := s.NewBatch()
	b.PutLocal("_local/x", []byte("{}"))
	commit(tb, b)
}

func TestCreateNamesDrop(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	names := []string{"shards/00000000-7fffffff/a.1", "shards/00000000-7fffffff/team/x.2", "shards/80000000-ffffffff/a.1"}
	for _, n := range names {
		must(t, e.Create(n, CreateOptions{}))
	}
	if err := e.Create(names[1], CreateOptions{}); !fault.Is(err, fault.Exists) {
		t.Errorf("second Create: %v", err)
	}
	for _, bad := range []string{"", "/", "a//b", "../x", "shards/../..", "a/./b", "a\x00"} {
		if err := e.Create(bad, CreateOptions{}); err == nil {
			t.Errorf("Create(%q) succeeded", bad)
		}
		if _, err := e.Acquire(bad); !fault.Is(err, fault.NoCopy) {
			t.Errorf("Acquire(%q): %v", bad, err)
		}
		if err := e.Drop(bad); !fault.Is(err, fault.NoCopy) {
			t.Errorf("Drop(%q): %v", bad, err)
		}
	}
	s, err := e.Acquire(names[1])
	must(t, err)
	uuid := s.UUID()
	writeOne(t, s)
	if err := e.Create(names[1], CreateOptions{}); !fault.Is(err, fault.Exists) {
		t.Errorf("Create of an open store: %v", err)
	}
	e.Release(s)
	stop()

	e, _ = startEngine(t, Options{FS: fs})
	got, err := e.Catalog().Names()
	must(t, err)
	if !slices.Equal(got, names) {
		t.Errorf("Names = %q, want %q", got, names)
	}
	wantThere := func(want ...bool) {
		t.Helper()
		for i, n := range append(names, "shards/00000000-7fffffff/team") {
			if e.Catalog().Has(n) != want[i] {
				t.Errorf("Has(%q) = %t", n, !want[i])
			}
		}
	}
	wantThere(true, true, true, false)
	s, err = e.Acquire(names[1])
	must(t, err)
	wantThere(true, true, true, false)
	if s.UUID() != uuid || uuid == [16]byte{} {
		t.Errorf("uuid is %x, was %x", s.UUID(), uuid)
	}
	// In use, it goes with the last pin; no new user can acquire it.
	must(t, e.Drop(names[1]))
	if _, err := e.Acquire(names[1]); !fault.Is(err, fault.NoCopy) {
		t.Errorf("Acquire of a dropped store: %v", err)
	}
	wantThere(true, false, true, false)
	if err := e.Drop(names[1]); !fault.Is(err, fault.NoCopy) {
		t.Errorf("Drop of a dropped store: %v", err)
	}
	writeOne(t, s) // its user is not disturbed
	e.Release(s)
	must(t, e.Drop(names[0]))
	got, err = e.Catalog().Names()
	must(t, err)
	if !slices.Equal(got, names[2:]) {
		t.Errorf("Names = %q, want %q", got, names[2:])
	}
	must(t, e.Create(names[1], CreateOptions{}))
	s, err = e.Acquire(names[1])
	must(t, err)
	if s.UUID() == uuid {
		t.Error("a store made anew has the old uuid")
	}
	e.Release(s)
}

func TestPartitionedIsKept(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{Partitioned: true}))
	stop()
	e, _ = startEngine(t, Options{FS: fs})
	if s := acquire(t, e, testStore); !s.Partitioned() {
		t.Error("the option is lost")
	}
}

func TestDataDirectoryIsLocked(t *testing.T) {
	fs := vfs.NewMem()
	_, stop := startEngine(t, Options{FS: fs})
	if _, err := NewEngine(Options{Dir: "data", FS: fs}); err == nil {
		t.Error("a second engine has the directory")
	}
	stop()
	_, stop = startEngine(t, Options{FS: fs})
	stop()
}

// TestEmptyStore: a store without a write reads as an empty one and costs no
// Pebble instance.
func TestEmptyStore(t *testing.T) {
	s := newStore(t, CreateOptions{})
	if _, ok, err := s.Reader().Record("a"); ok || err != nil {
		t.Errorf("Record: %v, %v", ok, err)
	}
	var h doc.Head
	if ok, err := s.Reader().Head("a", &h); ok || err != nil {
		t.Errorf("Head: %v, %v", ok, err)
	}
	snap, err := s.Snapshot()
	must(t, err)
	it, err := snap.Docs(Range{})
	must(t, err)
	if it.First() {
		t.Error("a row")
	}
	must(t, it.Close())
	if n, err := snap.CountDocs("x"); n != 0 || err != nil {
		t.Errorf("CountDocs: %d, %v", n, err)
	}
	if n, err := snap.CountChanges(0); n != 0 || err != nil {
		t.Errorf("CountChanges: %d, %v", n, err)
	}
	must(t, s.Compact(context.Background(), CompactOptions{}))
	checkStore(t, s)
	if s.inst.Opened() || s.engine.Stats().OpenStores != 0 {
		t.Error("reading opened the store")
	}
	w := newEdits()
	b := s.NewBatch()
	w.put(b, edit{id: "a"})
	commit(t, b)
	if !s.inst.Opened() {
		t.Error("writing did not open the store")
	}
	if n, err := snap.CountDocs("x"); n != 0 || err != nil {
		t.Errorf("the old snapshot changed: %d, %v", n, err)
	}
	must(t, snap.Close())
	checkStore(t, s)
	if f := s.inst.DB().FormatMajorVersion(); f != instance.PebbleFormat {
		t.Errorf("format %v", f)
	}
}

// TestLeastRecentlyUsed: above MaxOpen the longest unused are closed, never one
// with a pin.
func TestLeastRecentlyUsed(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: 3})
	open := func(i int) *Store {
		s, err := e.Acquire(storeName(i))
		must(t, err)
		if !s.inst.Opened() {
			writeOne(t, s)
		}
		return s
	}
	for i := range 6 {
		must(t, e.Create(storeName(i), CreateOptions{}))
	}
	pinned := open(0)
	for i := 1; i < 6; i++ {
		e.Release(open(i))
	}
	isOpen := func(i int) bool {
		e.cache.mu.Lock()
		defer e.cache.mu.Unlock()
		return e.cache.mu.entries[storeName(i)] != nil
	}
	for i, want := range []bool{true, false, false, false, true, true} {
		if isOpen(i) != want {
			t.Errorf("store %d open: %v, want %v", i, !want, want)
		}
	}
	var all []*Store
	for i := range 6 {
		all = append(all, open(i))
	}
	if e.Stats().OpenStores != 6 {
		t.Errorf("%d stores open, want all that are in use", e.Stats().OpenStores)
	}
	for _, s := range all {
		e.Release(s)
	}
	if e.Stats().OpenStores != 3 {
		t.Errorf("%d stores open, want 3", e.Stats().OpenStores)
	}
	if all[0] != pinned || !isOpen(0) {
		t.Error("a pinned store was closed")
	}
	e.Release(pinned)
	if got := e.Stats().OpenStores; got != 3 {
		t.Errorf("%d stores open, want 3", got)
	}
}

func TestIdleClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, stop := startEngine(t, Options{FS: vfs.NewMem(), IdleClose: time.Minute})
		defer stop()
		for i := range 2 {
			must(t, e.Create(storeName(i), CreateOptions{}))
		}
		used, err := e.Acquire(storeName(0))
		must(t, err)
		writeOne(t, used)
		idle, err := e.Acquire(storeName(1))
		must(t, err)
		writeOne(t, idle)
		e.Release(idle)
		<-time.After(50 * time.Second)
		if e.Stats().OpenStores != 2 {
			t.Errorf("%d stores open after 50 s", e.Stats().OpenStores)
		}
		<-time.After(30 * time.Second)
		if e.Stats().OpenStores != 1 || e.Stats().PinnedStores != 1 {
			t.Errorf("%d stores open after 80 s, want the pinned one", e.Stats().OpenStores)
		}
		writeOne(t, used)
		e.Release(used)
	})
}

// TestSingleFlight: many users of a closed store get one instance.
func TestSingleFlight(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: 2})
	for i := range 4 {
		must(t, e.Create(storeName(i), CreateOptions{}))
		s, err := e.Acquire(storeName(i))
		must(t, err)
		writeOne(t, s)
		e.Release(s)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				s, err := e.Acquire(storeName((g + i) % 4))
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				if _, ok, err := s.Reader().Local("_local/x"); !ok || err != nil {
					t.Errorf("Local: %v, %v", ok, err)
				}
				e.Release(s)
			}
		})
	}
	wg.Wait()
}

// TestCloseWaits: Close does not take a store from under its user.
func TestCloseWaits(t *testing.T) {
	e, err := NewEngine(Options{Dir: "data", FS: vfs.NewMem()})
	must(t, err)
	must(t, e.Create(testStore, CreateOptions{}))
	s, err := e.Acquire(testStore)
	must(t, err)
	writeOne(t, s)
	snap, err := s.Snapshot()
	must(t, err)
	e.Release(s) // the snapshot holds the store
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for {
		if _, err := e.Acquire(testStore); err != nil {
			if !fault.Is(err, fault.Closed) {
				t.Errorf("Acquire while closing: %v", err)
			}
			break
		}
		e.Release(s)
	}
	if n := snap.Counters().Live; n != 0 {
		t.Errorf("%d documents", n)
	}
	select {
	case err := <-closed:
		t.Fatalf("Close returned with a snapshot open: %v", err)
	default:
	}
	must(t, snap.Close())
	must(t, <-closed)
}

// TestCloseGivesUp: a pin that is never given back does not hang the process.
func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := NewEngine(Options{Dir: "data", FS: vfs.NewMem()})
		must(t, err)
		must(t, e.Create(testStore, CreateOptions{}))
		s, err := e.Acquire(testStore)
		must(t, err)
		if err := e.Close(); err == nil {
			t.Error("Close says nothing of the store in use")
		}
		e.Release(s)
		<-e.cache.drained
		must(t, e.env.empty.Close())
		must(t, e.releaseShared())
	})
}

func TestFileSize(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem()})
	must(t, e.Create(testStore, CreateOptions{}))
	if n, err := e.Catalog().FileSize(testStore); n != 0 || err != nil {
		t.Errorf("FileSize of an empty store: %d, %v", n, err)
	}
	s, err := e.Acquire(testStore)
	must(t, err)
	putDocs(t, s, newEdits(), docsOf{1000, 100, numbered})
	must(t, s.inst.DB().Flush())
	n, err := e.Catalog().FileSize(testStore)
	if err != nil || n < 50_000 {
		t.Errorf("FileSize of an open store: %d, %v", n, err)
	}
	e.Release(s)
	must(t, e.cache.closeIdle(0))
	n, err = e.Catalog().FileSize(testStore)
	if err != nil || n < 50_000 {
		t.Errorf("FileSize of a closed store: %d, %v", n, err)
	}
	if _, err := e.Catalog().FileSize("shards/nothing"); !fault.Is(err, fault.NoCopy) {
		t.Errorf("FileSize of nothing: %v", err)
	}
}
