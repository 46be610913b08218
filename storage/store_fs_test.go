package storage

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/vfstest"

	"divan/storage/instance"
	"divan/storage/storagetest"
)

// TestFewOpenFiles: what an open store holds open.
func TestFewOpenFiles(t *testing.T) {
	fs, dump := vfstest.WithOpenFileTracking(vfs.NewMem())
	e, _ := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{}))
	open := func() (n int) {
		t.Helper()
		var out strings.Builder
		dump(&out)
		if _, err := fmt.Sscanf(out.String(), "%d open files", &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := open() // of the engine
	s := acquire(t, e, testStore)
	writeOne(t, s)
	if n := open() - before; n > 2 || before > 1 {
		t.Errorf("an open store holds %d files, want 2; the engine %d, want 1", n, before)
	}
}

// TestCrashAsManifestMoves: a loss of power right after a marker of the manifest
// came or went, on a file system that keeps no order, leaves the store whole.
func TestCrashAsManifestMoves(t *testing.T) {
	fs := &eventfulFS{CrashFS: storagetest.NewCrashFS()}
	var acked atomic.Bool
	var moves int
	fs.after = func(name string) {
		if !strings.HasPrefix(fs.PathBase(name), instance.ManifestMarker) {
			return
		}
		moves++
		for seed := range uint64(20) {
			must(t, firstWriteSurvived(fs.CrashFS, seed, acked.Load()))
		}
	}
	for range 3 {
		e, stop := startEngine(t, Options{FS: fs})
		if !acked.Load() {
			must(t, e.Create(testStore, CreateOptions{}))
		}
		s, err := e.Acquire(testStore)
		must(t, err)
		b := s.NewBatch()
		if !acked.Load() {
			newEdits().put(b, edit{id: "a"})
		} else {
			b.PutLocal("_local/y", []byte("{}"))
		}
		commit(t, b)
		acked.Store(true)
		e.Release(s)
		stop()
	}
	if moves < 4 {
		t.Fatalf("the markers moved %d times only", moves)
	}
}

// eventfulFS tells when a file was created or removed.
type eventfulFS struct {
	storagetest.CrashFS
	after func(name string)
}

func (f *eventfulFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.CrashFS.Create(name, category)
	f.after(name)
	return file, err
}

func (f *eventfulFS) Remove(name string) error {
	err := f.CrashFS.Remove(name)
	f.after(name)
	return err
}

// TestMissingManifestMarker: a store that has lost it is not taken for an empty
// one.
func TestMissingManifestMarker(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{}))
	s, err := e.Acquire(testStore)
	must(t, err)
	b := s.NewBatch()
	newEdits().put(b, edit{id: "a"})
	commit(t, b)
	dir := s.inst.Dir
	e.Release(s)
	stop()
	files, err := fs.List(dir)
	must(t, err)
	for _, file := range files {
		if strings.HasPrefix(file, instance.ManifestMarker) {
			must(t, fs.Remove(fs.PathJoin(dir, file)))
		}
	}
	e, stop = startEngine(t, Options{FS: fs})
	defer stop()
	if _, err := e.Acquire(testStore); !errors.Is(err, ErrLost) {
		t.Errorf("%v", err)
	}
}
