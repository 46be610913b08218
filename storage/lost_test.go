package storage

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"divan/storage/fault"
	"divan/storage/storagetest"
)

const lostName = "shards/80000000-ffffffff/team/pond.1763600000"

// TestLostStore: a store whose directory goes is missed, also after a restart,
// until it is given up or dropped.
func TestLostStore(t *testing.T) {
	for _, gone := range []string{"directory", "range", "identity"} {
		t.Run(gone, func(t *testing.T) {
			fs := vfs.NewMem()
			e, stop := startEngine(t, Options{FS: fs})
			must(t, e.Create(lostName, CreateOptions{}))
			s := take(t, e, lostName)
			writeOne(t, s)
			id := s.id.FileName()
			e.Release(s)
			stop()
			switch path := e.env.path(lostName); gone {
			case "directory":
				must(t, fs.RemoveAll(path))
			case "range":
				must(t, fs.RemoveAll(e.env.path("shards", "80000000-ffffffff")))
			case "identity":
				must(t, fs.Remove(fs.PathJoin(path, id)))
			}
			e, _ = startEngine(t, Options{FS: fs})
			for range 2 { // not remembered as a failure of the disk
				_, err := e.Acquire(lostName)
				if !fault.Is(err, fault.Unavailable) || !errors.Is(err, ErrLost) || fault.Reason(err) != "The files of the shard 80000000-ffffffff are missing." {
					t.Fatalf("Acquire: %v", err)
				}
			}
			if !e.Losses().Lost(lostName) {
				t.Error("not lost")
			}
			must(t, e.Losses().Forget(lostName))
			if _, err := e.Acquire(lostName); !fault.Is(err, fault.NoCopy) {
				t.Errorf("Acquire: %v", err)
			}
			must(t, e.Create(lostName, CreateOptions{}))
			s = take(t, e, lostName)
			if _, ok, err := s.Reader().Local("_local/x"); ok || err != nil {
				t.Errorf("the new store is not empty: %v", err)
			}
			e.Release(s)
			if err := e.Losses().Forget(lostName); !fault.Is(err, fault.Exists) {
				t.Errorf("a store that is there was given up: %v", err)
			}
			left, err := fs.List(e.env.path(OrphanedDir, "80000000-ffffffff", "team", "pond.1763600000"))
			if kept := err == nil && slices.ContainsFunc(left, func(f string) bool { return strings.HasSuffix(f, ".log") }); kept != (gone == "identity") {
				t.Errorf("what was left lies in %q, %v", left, err)
			}
		})
	}
}

// TestDroppedStoreIsNotLost, nor is one that another copy can fill, nor one that
// this program has never seen.
func TestDroppedStoreIsNotLost(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(lostName, CreateOptions{}))
	must(t, e.Drop(lostName))
	if e.Losses().Lost(lostName) {
		t.Error("a dropped store is missed")
	}
	must(t, e.Create(lostName, CreateOptions{}))
	stop()
	must(t, fs.Remove(e.env.path("made"))) // as in a directory of an earlier version
	e, stop = startEngine(t, Options{FS: fs})
	must(t, e.Losses().NoteMade([]string{lostName}))
	must(t, e.Losses().NoteMade([]string{lostName}))
	if e.Losses().Lost(lostName) {
		t.Error("lost and there")
	}
	stop()
	must(t, fs.RemoveAll(e.env.path(lostName)))
	e, _ = startEngine(t, Options{FS: fs})
	if !e.Losses().Lost(lostName) || e.Losses().Lost(lostName+"1") {
		t.Error("not what is lost")
	}
	must(t, e.Create(lostName, CreateOptions{}))
	if e.Losses().Lost(lostName) {
		t.Error("lost and there again")
	}
}

// TestSwappedStores: the directory of another store is not opened.
func TestSwappedStores(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	one, two := storeName(1), storeName(2)
	for _, name := range []string{one, two} {
		must(t, e.Create(name, CreateOptions{}))
		s := take(t, e, name)
		writeOne(t, s)
		e.Release(s)
	}
	stop()
	must(t, fs.Rename(e.env.path(one), e.env.path("other")))
	must(t, fs.Rename(e.env.path(two), e.env.path(one)))
	must(t, fs.Rename(e.env.path("other"), e.env.path(two)))
	e, _ = startEngine(t, Options{FS: fs})
	for _, name := range []string{one, two} {
		if _, err := e.Acquire(name); !fault.Is(err, fault.Corruption) || fault.Reason(err) != "The directory is that of another shard." {
			t.Errorf("Acquire: %v", err)
		}
	}
}

// TestOrphan: what is set aside is out of the way, and whole when it comes back,
// whenever power is cut after it.
func TestOrphan(t *testing.T) {
	fs := storagetest.NewCrashFS()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(lostName, CreateOptions{}))
	s := take(t, e, lostName)
	writeOne(t, s)
	must(t, e.Orphan(lostName)) // waits for the pin
	if e.Catalog().Has(lostName) {
		t.Error("still there")
	}
	e.Release(s)
	rnd := rand.New(rand.NewPCG(1, 2))
	clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 0, RNG: rnd})
	stop()
	for _, fs := range []vfs.FS{fs, clone} {
		e, _ := startEngine(t, Options{FS: fs})
		names, err := e.Catalog().Names()
		orphans, err2 := e.Catalog().Orphans()
		if err != nil || err2 != nil || len(names) != 0 || len(orphans) != 1 {
			t.Fatalf("names %q, %v; orphans %q, %v", names, err, orphans, err2)
		}
		if e.Losses().Lost(lostName) {
			t.Error("missed")
		}
		must(t, fs.MkdirAll(fs.PathDir(e.env.path(lostName)), 0o755))
		must(t, fs.Rename(e.env.path(orphans[0]), e.env.path(lostName)))
		s := take(t, e, lostName)
		if _, ok, err := s.Reader().Local("_local/x"); !ok || err != nil {
			t.Errorf("what was written is gone: %v", err)
		}
		checkStore(t, s)
		e.Release(s)
		must(t, e.Orphan(lostName)) // also one that is open
		must(t, e.Create(lostName, CreateOptions{}))
		must(t, e.Orphan(lostName)) // and a second one of that name
		if orphans, err = e.Catalog().Orphans(); err != nil || len(orphans) != 2 {
			t.Errorf("orphans %q, %v", orphans, err)
		}
		must(t, fs.RemoveAll(e.env.path(OrphanedDir))) // as an operator does
		must(t, e.Create(lostName, CreateOptions{}))
		must(t, e.Orphan(lostName))
		if orphans, err = e.Catalog().Orphans(); err != nil || len(orphans) != 1 {
			t.Errorf("orphans %q, %v", orphans, err)
		}
	}
}

// readOnlyFS is a file system that cannot be written to, or in which only the
// lock can be had.
type readOnlyFS struct {
	vfs.FS
	lockable bool
}

// Lock implements vfs.FS.
func (f readOnlyFS) Lock(name string) (io.Closer, error) {
	if f.lockable {
		return f.FS.Lock(name)
	}
	return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EROFS}
}

// Create implements vfs.FS.
func (f readOnlyFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EACCES}
}

// TestReadOnlyDirectory: what cannot be written is not called in use.
func TestReadOnlyDirectory(t *testing.T) {
	for _, lockable := range []bool{false, true} {
		_, err := NewEngine(Options{Dir: "data", FS: readOnlyFS{vfs.NewMem(), lockable}})
		if err == nil || !strings.HasPrefix(err.Error(), "data directory data cannot be written: ") {
			t.Errorf("NewEngine: %v", err)
		}
	}
}

// take pins a store until Release.
func take(t *testing.T, e *Engine, name string) *Store {
	t.Helper()
	s, err := e.Acquire(name)
	must(t, err)
	return s
}

// TestDropWhileMade: a store that is dropped while it is made is not missed afterwards.
func TestDropWhileMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		making, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.Contains(op.Path, "pond.") {
				once.Do(func() {
					close(making)
					<-goOn
				})
			}
			return nil
		}))
		e, stop := startEngine(t, Options{FS: fs})
		var made, dropped error
		var both sync.WaitGroup
		both.Go(func() { made = e.Create(lostName, CreateOptions{}) })
		<-making
		both.Go(func() { dropped = e.Drop(lostName) })
		synctest.Wait() // it waits for what is made
		close(goOn)
		both.Wait()
		must(t, errors.Join(made, dropped))
		if e.Catalog().Has(lostName) || e.Losses().Lost(lostName) {
			t.Errorf("it is here: %v, it is missed: %v", e.Catalog().Has(lostName), e.Losses().Lost(lostName))
		}
		if _, err := e.Acquire(lostName); !fault.Is(err, fault.NoCopy) {
			t.Errorf("got %v", err)
		}
		stop()
	})
}
