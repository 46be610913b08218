package storage

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
	"divan/storage/marks"
)

// markOf writes the mark of a store as programs of before did.
func markOf(t *testing.T, e *Engine, name string) {
	t.Helper()
	must(t, e.rebuilding.Add(name))
}

func wantMarks(t *testing.T, e *Engine, want ...string) {
	t.Helper()
	if got := e.AllRebuilding(); !slices.Equal(got, want) {
		t.Errorf("marks of %q, want %q", got, want)
	}
	for i := range 3 {
		if name := storeName(i); e.Rebuilding(name) != slices.Contains(want, name) {
			t.Errorf("%s: %t", name, e.Rebuilding(name))
		}
	}
}

// TestMarksOfBefore: marks of earlier programs are read, also marks of stores that are
// not there, block nothing, and are taken away for good.
func TestMarksOfBefore(t *testing.T) {
	fs := vfs.NewCrashableMem()
	e := engineOn(t, fs)
	one, two, none := storeName(0), storeName(1), storeName(2)
	must(t, e.Create(one, CreateOptions{CopyID: 1}))
	for _, name := range []string{none, one, two} {
		markOf(t, e, name)
	}
	must(t, e.Create(two, CreateOptions{CopyID: 1}))
	wantMarks(t, e, one, two, none)

	fs = fs.CrashClone(vfs.CrashCloneCfg{})
	e = engineOn(t, fs)
	wantMarks(t, e, one, two, none)
	for _, name := range []string{one, two} {
		s := take(t, e, name)
		writeOne(t, s)
		checkStore(t, s)
		e.Release(s)
	}
	if _, err := e.Acquire(none); !fault.Is(err, fault.NoCopy) {
		t.Errorf("Acquire: %v", err)
	}

	for range 2 { // again changes nothing
		must(t, e.ClearRebuilding(one))
	}
	wantMarks(t, e, two, none)
	must(t, e.Drop(two))
	wantMarks(t, e, none)
	after := engineOn(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	wantMarks(t, after, none)
	if !after.Has(one) || after.Has(two) {
		t.Error("a store went with its mark, or came back without one")
	}
	must(t, after.ClearRebuilding(none))
	wantMarks(t, after)
}

// TestHalfAMark: a file that a crash left half is no mark.
func TestHalfAMark(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	markOf(t, e, storeName(0))
	path := e.path(rebuildingDir, marks.Hash(storeName(1)))
	stop()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write([]byte(storeName(1)[:5]))
	must(t, err)
	must(t, f.Close())
	e, _ = startEngine(t, Options{FS: fs})
	wantMarks(t, e, storeName(0))
}
