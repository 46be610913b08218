package shard

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/marks"
)

// markOf writes the mark of a copy as programs of before did.
func markOf(t *testing.T, fs vfs.FS, name string) {
	t.Helper()
	m := marks.Set{Folder: marks.Folder{FS: fs, Path: "/data/rebuilding", Ensure: func(dir string) error { return fs.MkdirAll(dir, 0o755) }}}
	if err := m.Load(); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(name); err != nil {
		t.Fatal(err)
	}
}

// TestMarksOfBefore: what a program of before has marked as incomplete is known after a
// restart, answers as any copy does, and loses its mark for good, by itself or with the copy.
func TestMarksOfBefore(t *testing.T) {
	const other = "shards/00000000-ffffffff/other.1763600000"
	fs := newFS()
	n := open(t, fs, Options{})
	n.create(CreateOptions{})
	n.stop()
	markOf(t, fs, copyName)
	markOf(t, fs, other) // whose copy was not made yet

	restart := func(want ...string) {
		t.Helper()
		n.stop()
		n = open(t, fs, Options{})
		if all := n.Copies.AllRebuilding(); !slices.Equal(all, want) {
			t.Errorf("marks of %q, want %q", all, want)
		}
		for _, name := range []string{copyName, other} {
			if n.Copies.Rebuilding(name) != slices.Contains(want, name) {
				t.Errorf("%s: %t", name, n.Copies.Rebuilding(name))
			}
		}
	}
	restart(copyName, other)
	n.must(n.edit("a", "", "{}"))
	if got := n.show("a"); got == "missing" {
		t.Error("a copy with a mark does not answer")
	}
	for range 2 { // again changes nothing
		if err := n.Copies.EndRebuilding(copyName); err != nil {
			t.Fatal(err)
		}
	}
	restart(other)
	if got := n.info(); got.Live != 1 {
		t.Errorf("%+v", got)
	}
	if err := n.Copies.Create(t.Context(), other, CreateOptions{ID: 7}); err != nil {
		t.Fatal(err)
	}
	if !n.Copies.Rebuilding(other) {
		t.Error("a mark went by itself")
	}
	if err := n.Copies.Drop(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	restart()
	n.stop()
}
