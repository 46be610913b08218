package storage

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/keyspace"
)

// failing is a file system on which chosen operations fail while on is set.
func failing(base vfs.FS, on *atomic.Bool, cause error, match func(op errorfs.Op) bool) vfs.FS {
	return errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && match(op) {
			return cause
		}
		return nil
	}))
}

func logSync(op errorfs.Op) bool {
	return strings.Contains(op.Path, "db0.1") && strings.HasSuffix(op.Path, ".log") &&
		(op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo)
}

// TestFailedSync: a log that cannot be synced stops its store, tells the one who
// waits, and leaves the rest of the node alone. Once the disk works again, the
// store can be opened anew, with all that was acknowledged.
func TestFailedSync(t *testing.T) {
	for _, c := range []struct {
		name  string
		cause error
		kind  fault.Kind
	}{
		{"broken", errorfs.ErrInjected, fault.Unavailable},
		{"full", syscall.ENOSPC, fault.InsufficientStorage},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { failedSync(t, c.cause, c.kind) })
		})
	}
}

func failedSync(t *testing.T, cause error, kind fault.Kind) {
	t.Helper()
	var on atomic.Bool
	e, stop := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, cause, logSync)})
	defer stop()
	must(t, e.Create(storeName(0), CreateOptions{}))
	must(t, e.Create(storeName(1), CreateOptions{}))
	sick, err := e.Acquire(storeName(0))
	must(t, err)
	well, err := e.Acquire(storeName(1))
	must(t, err)
	w := newEdits()
	putDocs(t, sick, w, docsOf{50, 10, numbered})
	writeOne(t, well)

	on.Store(true)
	b := sick.NewBatch()
	w.put(b, edit{id: "lost"})
	commit, err := b.Apply()
	if err == nil {
		err = commit.Wait()
	}
	if !fault.Is(err, kind) {
		t.Fatalf("Wait: %v", err)
	}
	everythingFails(t, sick, kind)
	writeOne(t, well)
	checkStore(t, well)

	// The last user gives it up; for a while it cannot be acquired again.
	e.Release(sick)
	if _, err := e.Acquire(storeName(0)); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Acquire at once: %v", err)
	}
	on.Store(false)
	<-time.After(retryAfter + time.Second)
	sick, err = e.Acquire(storeName(0))
	must(t, err)
	checkStore(t, sick)
	if n := sick.Counters().Live; n < 50 {
		t.Errorf("%d documents are left", n)
	}
	writeOne(t, sick)
	e.Release(sick)
	e.Release(well)
}

// everythingFails calls every method of a stopped store.
func everythingFails(t *testing.T, s *Store, kind fault.Kind) {
	t.Helper()
	calls := map[string]func() error{
		"Record":         func() error { _, _, err := s.Reader().Record("a"); return err },
		"Head":           func() error { _, err := s.Reader().Head("a", nil); return err },
		"Revision":       func() error { _, _, err := s.Reader().Revision("a", doc.Rev{}); return err },
		"Local":          func() error { _, _, err := s.Reader().Local("a"); return err },
		"Snapshot":       func() error { _, err := s.Snapshot(); return err },
		"Batch":          func() error { _, err := s.NewBatch().Apply(); return err },
		"NewAttachment":  func() error { _, err := s.NewAttachment("a", keyspace.ContentKey{}); return err },
		"OpenAttachment": func() error { _, err := s.OpenAttachment("a", keyspace.ContentKey{}, 0, -1); return err },
		"Purges":         func() error { _, err := s.Purges(0); return err },
		"FileSize":       func() error { _, err := s.FileSize(); return err },
		"Compact":        func() error { return s.Compact(context.Background(), CompactOptions{}) },
		"Check":          func() error { return s.Check(context.Background(), func(string) {}) },
		"Err":            s.Err,
	}
	for name, call := range calls {
		if err := call(); !fault.Is(err, kind) {
			t.Errorf("%s of a stopped store: %v", name, err)
		}
	}
}

// TestFailedRotation: when Pebble cannot begin a new log, or sync its directory,
// it would take the process with it.
func TestFailedRotation(t *testing.T) {
	for name, match := range map[string]func(op errorfs.Op) bool{
		"create": func(op errorfs.Op) bool {
			return strings.HasSuffix(op.Path, ".log") && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite)
		},
		"directory": func(op errorfs.Op) bool {
			return strings.HasSuffix(op.Path, "db0.1") && op.Kind == errorfs.OpOpenDir
		},
		"write": func(op errorfs.Op) bool {
			return strings.HasSuffix(op.Path, ".log") && op.Kind == errorfs.OpFileWrite
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { failedRotation(t, match) })
		})
	}
}

func failedRotation(t *testing.T, match func(op errorfs.Op) bool) {
	t.Helper()
	var on atomic.Bool
	e, stop := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, errorfs.ErrInjected, match)})
	defer stop()
	must(t, e.Create(storeName(0), CreateOptions{}))
	s, err := e.Acquire(storeName(0))
	must(t, err)
	w := newEdits()
	putDocs(t, s, w, docsOf{10, 10, numbered})
	on.Store(true)
	body := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	acked := 0
	for i := 0; err == nil && i < 100; i++ {
		b := s.NewBatch()
		w.put(b, edit{id: numbered(100 + i), body: body})
		var c *Commit
		if c, err = b.Apply(); err == nil {
			if err = c.Wait(); err == nil {
				acked++
			}
		}
	}
	if !fault.Is(err, fault.Unavailable) {
		t.Fatalf("Apply: %v", err)
	}
	everythingFails(t, s, fault.Unavailable)
	e.Release(s)
	on.Store(false)
	<-time.After(retryAfter + time.Second)
	s, err = e.Acquire(storeName(0))
	must(t, err)
	checkStore(t, s)
	if n := s.Counters().Live; n < uint64(10+acked) {
		t.Errorf("%d documents are left, %d were acknowledged", n, 10+acked)
	}
	e.Release(s)
}

// TestFailedFlush: a memtable that cannot be written stops the store.
func TestFailedFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		table := func(op errorfs.Op) bool {
			return strings.HasSuffix(op.Path, ".sst") && op.Kind == errorfs.OpCreate
		}
		e, stop := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, errorfs.ErrInjected, table)})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{}))
		s, err := e.Acquire(testStore)
		must(t, err)
		w := newEdits()
		putDocs(t, s, w, docsOf{100, 10, numbered})
		on.Store(true)
		_, err = s.inst.DB().AsyncFlush()
		must(t, err)
		synctest.Wait()
		<-time.After(time.Second)
		if !fault.Is(s.Err(), fault.Unavailable) {
			t.Errorf("the store goes on: %v", s.Err())
		}
		on.Store(false)
		e.Release(s)
		<-time.After(retryAfter + time.Second)
		s, err = e.Acquire(testStore)
		must(t, err)
		checkStore(t, s)
		if n := s.Counters().Live; n != 100 {
			t.Errorf("%d documents are left", n)
		}
		e.Release(s)
	})
}

// TestOpenFails: whichever write of opening fails, the error comes back, and the
// next try succeeds.
func TestOpenFails(t *testing.T) {
	for n := range int32(40) {
		var on atomic.Bool
		var count atomic.Int32
		fs := failing(vfs.NewMem(), &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
			return op.Kind.ReadOrWrite() == errorfs.OpIsWrite && count.Add(1) == n+1
		})
		openFails(t, fs, &on)
	}
}

func openFails(t *testing.T, fs vfs.FS, on *atomic.Bool) {
	t.Helper()
	e, err := NewEngine(Options{Dir: "data", FS: fs})
	must(t, err)
	must(t, e.Create(testStore, CreateOptions{}))
	s, err := e.Acquire(testStore)
	must(t, err)
	on.Store(true)
	w := newEdits()
	b := s.NewBatch()
	w.put(b, edit{id: "a"})
	c, err := b.Apply()
	if err == nil {
		err = c.Wait()
	}
	on.Store(false)
	acked := err == nil
	e.Release(s)
	e.cache.failures.refusals = map[string]refusal{}
	if s, err = e.Acquire(testStore); err != nil {
		t.Fatalf("Acquire after a failed write: %v", err)
	}
	checkStore(t, s)
	if n := s.Counters().Live; n > 1 || acked && n != 1 {
		t.Errorf("%d documents, acknowledged: %v", n, acked)
	}
	writeOne(t, s)
	e.Release(s)
	must(t, e.Close())
}

// TestFullDiskAtOpen: a store that cannot be opened for writing because the disk is
// still full, no matter which operation finds no space, is opened for reading,
// unless it is unknown whether what it shows is on the disk. It takes writes when
// there is space.
func TestFullDiskAtOpen(t *testing.T) {
	for name, c := range map[string]struct {
		match    func(op errorfs.Op) bool
		readable bool
	}{
		"everything": {func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }, false},
		"content":    {func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }, true},
		"tables":     {func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") }, true},
		"sync":       {func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileSync }, false},
		"manifest": {func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fullDiskAtOpen(t, c.match, c.readable) })
		})
	}
}

func fullDiskAtOpen(t *testing.T, match func(op errorfs.Op) bool, readable bool) {
	t.Helper()
	var on atomic.Bool
	e, stop := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, syscall.ENOSPC, match)})
	defer stop()
	must(t, e.Create(testStore, CreateOptions{}))
	s, err := e.Acquire(testStore)
	must(t, err)
	putDocs(t, s, newEdits(), docsOf{50, 10, numbered})
	e.Release(s)
	must(t, e.cache.closeIdle(0))
	on.Store(true)
	for range 3 {
		s, err := e.Acquire(testStore)
		if readable {
			must(t, err)
			checkStore(t, s)
			if n := s.Counters().Live; n != 50 {
				t.Errorf("%d documents on a full disk", n)
			}
			if _, err := s.NewBatch().Apply(); !fault.Is(err, fault.InsufficientStorage) {
				t.Errorf("Apply: %v", err)
			}
			if err := s.Compact(t.Context(), CompactOptions{}); !fault.Is(err, fault.InsufficientStorage) {
				t.Errorf("Compact: %v", err)
			}
			e.Release(s)
		} else {
			if !fault.Is(err, fault.InsufficientStorage) {
				t.Errorf("Acquire: %v", err)
			}
			if _, err := e.Acquire(testStore); !fault.Is(err, fault.Unavailable) {
				t.Errorf("Acquire at once: %v", err)
			}
		}
		<-time.After(retryAfter + time.Second)
	}
	on.Store(false)
	s, err = e.Acquire(testStore)
	must(t, err)
	checkStore(t, s)
	if n := s.Counters().Live; n != 50 {
		t.Errorf("%d documents are left", n)
	}
	writeOne(t, s)
	e.Release(s)
}

// TestStartOnFullDisk: where not even an empty file can be made, an engine starts, and
// its stores are read.
func TestStartOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		fs := failing(vfs.NewMem(), &on, syscall.ENOSPC, func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpFileWrite
		})
		e, stop := startEngine(t, Options{FS: fs})
		must(t, e.Create(testStore, CreateOptions{}))
		s := take(t, e, testStore)
		putDocs(t, s, newEdits(), docsOf{50, 10, numbered})
		e.Release(s)
		stop()
		on.Store(true)
		e, stop = startEngine(t, Options{FS: fs})
		defer stop()
		s = take(t, e, testStore)
		checkStore(t, s)
		if n := s.Counters().Live; n != 50 {
			t.Errorf("%d documents on a full disk", n)
		}
		e.Release(s)
		if err := e.Create(storeName(7), CreateOptions{}); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("Create: %v", err)
		}
	})
}

// TestUnsyncedStoreIsNotRead: what a log holds that could not be synced may not be on
// the disk, though later syncs succeed: the store is not opened for reading, but
// when there is space for writing it anew.
func TestUnsyncedStoreIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on, full atomic.Bool
		fs := failing(vfs.NewMem(), &on, syscall.ENOSPC, func(op errorfs.Op) bool {
			return !full.Load() && logSync(op) || full.Load() && op.Kind == errorfs.OpFileWrite
		})
		e, stop := startEngine(t, Options{FS: fs})
		defer stop()
		name := storeName(0)
		must(t, e.Create(name, CreateOptions{}))
		s := take(t, e, name)
		writeOne(t, s)
		on.Store(true)
		b := s.NewBatch()
		b.PutLocal("_local/unsynced", []byte("{}"))
		c, err := b.Apply()
		if err == nil {
			err = c.Wait()
		}
		if !fault.Is(err, fault.InsufficientStorage) {
			t.Fatalf("written: %v", err)
		}
		e.Release(s)
		full.Store(true)
		for range 3 {
			<-time.After(retryAfter + time.Second)
			if _, err := e.Acquire(name); !fault.Is(err, fault.InsufficientStorage) {
				t.Fatalf("Acquire: %v", err)
			}
		}
		on.Store(false)
		<-time.After(retryAfter + time.Second)
		s = take(t, e, name)
		checkStore(t, s)
		writeOne(t, s)
		e.Release(s)
	})
}

// opensFile reports whether an operation needs a file descriptor.
func opensFile(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpReuseForWrite, errorfs.OpList, errorfs.OpStat:
		return true
	default:
		return false
	}
}

// TestOpenWithoutDescriptors: from whichever step of opening on no file can be
// opened, or only at that step, the error comes back and nothing of the instance
// goes on running; with descriptors the store is there again, with all that it had.
func TestOpenWithoutDescriptors(t *testing.T) {
	for _, once := range []bool{false, true} {
		tried := 0
		for first := int32(1); ; first++ {
			reached := false
			synctest.Test(t, func(t *testing.T) { reached = openWithoutDescriptors(t, first, once) })
			if !reached {
				break
			}
			tried++
		}
		if tried < 10 {
			t.Errorf("opening took %d files only", tried)
		}
	}
}

// openWithoutDescriptors reports whether opening came to the step that was to
// fail first, or once.
func openWithoutDescriptors(t *testing.T, first int32, once bool) bool {
	t.Helper()
	var on atomic.Bool
	var count atomic.Int32
	fs := failing(vfs.NewMem(), &on, syscall.EMFILE, func(op errorfs.Op) bool {
		if !opensFile(op) {
			return false
		}
		n := count.Add(1)
		return n == first || n > first && !once
	})
	e, stop := startEngine(t, Options{FS: fs, Logger: zap.NewNop()})
	defer stop()
	must(t, e.Create(testStore, CreateOptions{}))
	s, err := e.Acquire(testStore)
	must(t, err)
	w := newEdits()
	for range 4 { // tables enough for a compaction, and a log for a flush
		putDocs(t, s, w, docsOf{10, 10, func(i int) string { return numbered(len(w.recs)) }})
		e.Release(s)
		must(t, e.cache.closeIdle(0))
		s, err = e.Acquire(testStore)
		must(t, err)
	}
	putDocs(t, s, w, docsOf{10, 10, func(i int) string { return numbered(len(w.recs)) }})
	e.Release(s)
	must(t, e.cache.closeIdle(0))
	on.Store(true)
	if s, err := e.Acquire(testStore); err == nil {
		e.Release(s)
	} else if !fault.Is(err, fault.Unavailable) {
		t.Errorf("Acquire, step %d: %v", first, err)
	}
	synctest.Wait() // for what the instance has left behind
	<-time.After(time.Second)
	on.Store(false)
	<-time.After(retryAfter + time.Second)
	s, err = e.Acquire(testStore)
	must(t, err)
	checkStore(t, s)
	if n := s.Counters().Live; n != uint64(len(w.recs)) {
		t.Errorf("%d documents are left of %d", n, len(w.recs))
	}
	e.Release(s)
	return count.Load() >= first
}
