package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
)

// TestSetCopyID: a store that does not say which copy it is says so from then on, open or
// not, and after a power cut; one that does keeps to it.
func TestSetCopyID(t *testing.T) {
	for _, open := range []bool{false, true} {
		fs := vfs.NewCrashableMem()
		e := engineOn(t, fs)
		const old, other = "shards/00000000-ffffffff/old.1", "shards/00000000-ffffffff/other.1"
		must(t, e.Create(old, CreateOptions{Partitioned: true}))
		must(t, e.Create(other, CreateOptions{CopyID: 7}))
		var s *Store
		if open {
			var err error
			if s, err = e.Acquire(old); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // again changes nothing
			must(t, e.SetCopyID(old, 70000))
		}
		if err := e.SetCopyID(old, 8); !fault.Is(err, fault.Exists) {
			t.Errorf("it became another copy: %v", err)
		}
		if err := e.SetCopyID(other, 8); !fault.Is(err, fault.Exists) {
			t.Errorf("it became another copy: %v", err)
		}
		if err := e.SetCopyID("shards/00000000-ffffffff/none.1", 8); !fault.Is(err, fault.NoCopy) {
			t.Errorf("of nothing: %v", err)
		}
		if s != nil {
			if s.CopyID() != 70000 {
				t.Errorf("the open store says %d", s.CopyID())
			}
			e.Release(s)
		}
		after := engineOn(t, fs.CrashClone(vfs.CrashCloneCfg{}))
		for name, want := range map[string]uint64{old: 70000, other: 7} {
			s, err := after.Acquire(name)
			if err != nil {
				t.Fatal(err)
			}
			if s.CopyID() != want || s.Partitioned() != (name == old) {
				t.Errorf("%s says %d, partitioned %t", name, s.CopyID(), s.Partitioned())
			}
			after.Release(s)
			if id, err := after.CopyID(name); err != nil || id != want {
				t.Errorf("%s: %d, %v", name, id, err)
			}
		}
		if stored, err := after.Stored(); err != nil || len(stored) != 2 || stored[0].CopyID != 70000 || stored[1].CopyID != 7 {
			t.Errorf("%+v, %v", stored, err)
		}
	}
}

func engineOn(t *testing.T, fs vfs.FS) *Engine {
	t.Helper()
	e, err := NewEngine(Options{Dir: "data", FS: fs})
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	return e
}
