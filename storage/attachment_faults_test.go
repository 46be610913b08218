package storage

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/keyspace"
)

// TestAttachmentWriteFails: whichever write of an upload fails, and those after it, Close
// says so, and nothing is left of it.
func TestAttachmentWriteFails(t *testing.T) {
	const never = 1 << 30
	var on atomic.Bool
	var left atomic.Int64 // writes that succeed
	mem := vfs.NewMem()
	e, _ := startEngine(t, Options{RowTables: true, FS: failing(mem, &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, uploadSuffix) && op.Kind == errorfs.OpFileWrite && left.Add(-1) < 0
	})})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s := acquire(t, e, testStore)
	data := noise(3*keyspace.ChunkSize+100, 1)
	on.Store(true)
	left.Store(never)
	upload(t, s, "a", keyspace.ContentKey{1}, data)
	writes := never - left.Load()
	if writes < 4 {
		t.Fatalf("%d writes for 4 chunks", writes)
	}
	for n := range writes {
		left.Store(n)
		w, err := s.NewAttachment("a", keyspace.ContentKey{2})
		must(t, err)
		_, _ = w.Write(data) // Close tells
		if err := w.Close(); !errors.Is(err, errorfs.ErrInjected) {
			t.Errorf("write %d of %d failed: Close = %v", n, writes, err)
		}
		if _, err := s.OpenAttachment("a", keyspace.ContentKey{2}, 0, -1); !fault.Is(err, fault.NotFound) {
			t.Errorf("write %d of %d failed, and the content is there: %v", n, writes, err)
		}
	}
	files, err := mem.List(s.inst.Dir)
	must(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, uploadSuffix) {
			t.Errorf("%s is left", f)
		}
	}
}

// TestAttachmentDamage: whichever byte of the table of a content is another one, the content is
// read as it was stored or not at all.
func TestAttachmentDamage(t *testing.T) {
	mem := vfs.NewMem()
	data := noise(5000, 3) // of a whole chunk Pebble takes seconds to tell which bit it may be
	table, size := storedTable(t, mem, data)
	positions := []int64{100, 2500, 4999}
	for p := int64(len(data)); p < size-54; p += 67 {
		positions = append(positions, p)
	}
	for p := size - 54; p < size; p++ { // the footer, which has no checksum of its own
		positions = append(positions, p)
	}
	damaged := 0
	for i, at := range positions {
		change(t, mem, table, at)
		got, err := readOnce(t, mem)
		change(t, mem, table, at)
		switch {
		case err != nil:
			damaged++
		case !bytes.Equal(got, data):
			t.Errorf("byte %d of %d is another one, and %d other bytes were read", at, size, len(got))
		case i < 3:
			t.Errorf("byte %d of the content is another one, and nobody has noticed", at)
		}
	}
	if damaged < len(positions)/4 {
		t.Errorf("%d of %d positions were noticed", damaged, len(positions))
	}
	if got, err := readOnce(t, mem); err != nil || !bytes.Equal(got, data) {
		t.Errorf("repaired: %d bytes, %v", len(got), err)
	}
}

// TestBothKindsOfTables: contents are read from tables of rows and of columns, before
// and after a compaction.
func TestBothKindsOfTables(t *testing.T) {
	mem := vfs.NewMem()
	ids := []string{"columns", "rows", "more columns"}
	for i, id := range ids {
		e, stop := startEngine(t, Options{FS: mem, RowTables: id == "rows"})
		if i == 0 {
			must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		}
		s, err := e.Acquire(testStore)
		must(t, err)
		data := noise(2*keyspace.ChunkSize+i, uint64(i))
		upload(t, s, id, keyspace.ContentKey{1}, data)
		w, b := newEdits(), s.NewBatch()
		w.load(t, s)
		w.put(b, edit{id: id, atts: []doc.Attachment{{Name: "x", Key: keyspace.ContentKey{1}, StoredLength: int64(len(data))}}})
		commit(t, b)
		for range 2 {
			for j, id := range ids[:i+1] {
				r, err := s.OpenAttachment(id, keyspace.ContentKey{1}, 0, -1)
				must(t, err)
				got, err := io.ReadAll(r)
				must(t, errors.Join(err, r.Close()))
				if !bytes.Equal(got, noise(2*keyspace.ChunkSize+j, uint64(j))) {
					t.Errorf("%s: %d other bytes", id, len(got))
				}
			}
			must(t, s.inst.DB().Compact(t.Context(), []byte{0}, []byte{0xff}, false))
		}
		checkStore(t, s)
		e.Release(s)
		stop()
	}
}

// storedTable stores a content of a document, and returns the table that holds it and its size.
func storedTable(t *testing.T, mem *vfs.MemFS, data []byte) (table string, size int64) {
	t.Helper()
	e, stop := startEngine(t, Options{FS: mem, RowTables: true})
	defer stop()
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	defer e.Release(s)
	upload(t, s, "a", keyspace.ContentKey{1}, data)
	w, b := newEdits(), s.NewBatch()
	w.put(b, edit{id: "a", atts: []doc.Attachment{{Name: "x", Key: keyspace.ContentKey{1}, StoredLength: int64(len(data))}}})
	commit(t, b)
	files, err := mem.List(s.inst.Dir)
	must(t, err)
	for _, f := range files {
		path := mem.PathJoin(s.inst.Dir, f)
		info, err := mem.Stat(path)
		must(t, err)
		if strings.HasSuffix(f, ".sst") && info.Size() > size {
			table, size = path, info.Size()
		}
	}
	if size < int64(len(data)) {
		t.Fatalf("the largest table has %d bytes, the content %d", size, len(data))
	}
	return table, size
}

// change inverts a byte of a file.
func change(t *testing.T, fs vfs.FS, path string, at int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	must(t, err)
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	must(t, err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b[:], at)
	must(t, errors.Join(err, f.Close()))
}

// readOnce starts an engine and reads the content that storedTable has stored.
func readOnce(t *testing.T, fs vfs.FS) ([]byte, error) {
	t.Helper()
	e, stop := startEngine(t, Options{FS: fs, Logger: zap.NewNop()})
	defer stop()
	s, err := e.Acquire(testStore)
	if err != nil {
		return nil, err
	}
	defer e.Release(s)
	r, err := s.OpenAttachment("a", keyspace.ContentKey{1}, 0, -1)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}
