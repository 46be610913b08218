package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// uploadOf is the entry of a revision for a content of so many bytes.
func uploadOf(key keyspace.ContentKey, data []byte) []doc.Attachment {
	return []doc.Attachment{{Name: "big", Key: key, Length: int64(len(data)), StoredLength: int64(len(data))}}
}

// hasContent reports whether there is a content.
func hasContent(tb testing.TB, s *Store, id string, key keyspace.ContentKey) bool {
	tb.Helper()
	r, err := s.OpenAttachment(id, key, 0, -1)
	if fault.Is(err, fault.NotFound) {
		return false
	}
	must(tb, err)
	must(tb, r.Close())
	return true
}

// notes counts the notes of uploads, on disk and known.
func notes(tb testing.TB, s *Store) (disk, known int) {
	tb.Helper()
	must(tb, records.Each(s.inst.DB(), keyspace.Start(keyspace.Uploads), keyspace.End(keyspace.Uploads), func(_, _ []byte) error { disk++; return nil }))
	return disk, s.uploads.Len()
}

// TestSweepKeepsWhatIsReferredTo: content that came a second time, after its
// document, is not deleted when the process starts anew, only the note is.
func TestSweepKeepsWhatIsReferredTo(t *testing.T) {
	data := noise(keyspace.ChunkSize+5, 1)
	for name, refer := range map[string]func(b *Batch, w *edits){
		"in the record": func(b *Batch, w *edits) {
			w.put(b, edit{id: "a", atts: uploadOf(keyspace.ContentKey{1}, data)})
		},
		"beside the record": func(b *Batch, w *edits) {
			w.put(b, edit{id: "a", body: largeBody(), atts: uploadOf(keyspace.ContentKey{1}, data)})
		},
		"in a losing leaf": func(b *Batch, w *edits) {
			w.put(b, edit{id: "a", body: largeBody()})
			w.put(b, edit{id: "a", body: largeBody()})
			w.put(b, edit{id: "a", root: true, atts: uploadOf(keyspace.ContentKey{1}, data)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			e, stop := startEngine(t, Options{FS: fs})
			must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
			s, err := e.Acquire(testStore)
			must(t, err)
			w := newEdits()
			upload(t, s, "a", keyspace.ContentKey{1}, data)
			b := s.NewBatch()
			refer(b, w)
			commit(t, b)
			if disk, known := notes(t, s); disk+known != 0 {
				t.Fatalf("a revision refers to the content, but %d notes of it are on disk, %d known", disk, known)
			}
			upload(t, s, "a", keyspace.ContentKey{1}, data)
			if disk, known := notes(t, s); disk != 1 || known != 1 {
				t.Fatalf("%d notes of the second upload are on disk, %d known", disk, known)
			}
			checkStore(t, s)
			e.Release(s)
			stop()

			e, _ = startEngine(t, Options{FS: fs})
			s = acquire(t, e, testStore)
			if !hasContent(t, s, "a", keyspace.ContentKey{1}) || s.swept != 0 {
				t.Errorf("the content is gone, %d swept", s.swept)
			}
			if disk, known := notes(t, s); disk+known != 0 {
				t.Errorf("%d notes are on disk, %d known", disk, known)
			}
			checkStore(t, s)
			// Later it goes as any content does.
			b = s.NewBatch()
			w.purge(b, "a")
			commit(t, b)
			compactStore(t, s)
			if hasContent(t, s, "a", keyspace.ContentKey{1}) {
				t.Error("compaction left the content")
			}
		})
	}
}

// largeBody does not fit into a record.
func largeBody() []byte { return []byte(`{"x":"` + strings.Repeat("y", doc.InlineLimit) + `"}`) }

func compactStore(t *testing.T, s *Store) {
	t.Helper()
	must(t, s.Compact(t.Context(), CompactOptions{Write: func(_ context.Context, fn func(*Batch) error) error {
		b := s.NewBatch()
		if err := fn(b); err != nil {
			b.Discard()
			return err
		}
		commit(t, b)
		return nil
	}}))
}

// TestSweepOfOneDocument: each upload of a document is judged alone, and those
// of another one are not taken for its.
func TestSweepOfOneDocument(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	data := noise(1000, 1)
	w := newEdits()
	for _, id := range []string{"a", "b"} {
		upload(t, s, id, keyspace.ContentKey{1}, data)
		b := s.NewBatch()
		w.put(b, edit{id: id, atts: uploadOf(keyspace.ContentKey{1}, data)})
		commit(t, b)
	}
	for _, id := range []string{"a", "b", "c"} {
		for key := range byte(3) {
			upload(t, s, id, keyspace.ContentKey{key}, data)
		}
	}
	e.Release(s)
	stop()
	e, _ = startEngine(t, Options{FS: fs})
	s = acquire(t, e, testStore)
	var left []string
	for _, id := range []string{"a", "b", "c"} {
		for key := range byte(3) {
			if hasContent(t, s, id, keyspace.ContentKey{key}) {
				left = append(left, fmt.Sprint(id, key))
			}
		}
	}
	if got := strings.Join(left, " "); got != "a1 b1" || s.swept != 7 {
		t.Errorf("%s are left, %d swept", got, s.swept)
	}
}

// TestSweepOfDamagedDocument: it is unknown what a damaged document refers to,
// so its content stays, and the store opens.
func TestSweepOfDamagedDocument(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	upload(t, s, "a", keyspace.ContentKey{1}, noise(1000, 1))
	must(t, s.inst.DB().Set(keyspace.AppendDoc(nil, "a"), []byte{0xff}, pebble.Sync))
	e.Release(s)
	stop()
	e, _ = startEngine(t, Options{FS: fs})
	if s = acquire(t, e, testStore); !hasContent(t, s, "a", keyspace.ContentKey{1}) {
		t.Error("the content is gone")
	}
}

// TestGiveUp: only what is an upload and nothing else is dropped.
func TestGiveUp(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	data := noise(keyspace.ChunkSize+5, 1)
	w := newEdits()
	var rev doc.Rev
	for _, step := range []struct {
		what string
		key  byte
		do   func(b *Batch, key keyspace.ContentKey)
		left bool
	}{
		{"an upload", 1, func(*Batch, keyspace.ContentKey) { upload(t, s, "a", keyspace.ContentKey{1}, data) }, false},
		{"what is not there", 1, func(*Batch, keyspace.ContentKey) {}, false},
		{"what this batch refers to", 2, func(b *Batch, key keyspace.ContentKey) {
			upload(t, s, "a", key, data)
			rev = w.put(b, edit{id: "a", atts: uploadOf(key, data)})
		}, true},
		{"what a leaf refers to", 2, func(*Batch, keyspace.ContentKey) {}, true},
		{"what came a second time", 2, func(_ *Batch, key keyspace.ContentKey) { upload(t, s, "a", key, data) }, true},
		{"what was small", 3, func(b *Batch, key keyspace.ContentKey) { b.PutAttachment("a", key, data) }, true},
		{"what a large revision of this batch refers to", 4, func(b *Batch, key keyspace.ContentKey) {
			upload(t, s, "a", key, data)
			w.put(b, edit{id: "a", parent: rev, body: largeBody(), atts: uploadOf(key, data)})
		}, true},
		{"what an inner revision refers to", 2, func(_ *Batch, key keyspace.ContentKey) { upload(t, s, "a", key, data) }, true},
		{"an upload of a document with others", 5, func(_ *Batch, key keyspace.ContentKey) { upload(t, s, "a", key, data) }, false},
	} {
		b := s.NewBatch()
		key := keyspace.ContentKey{step.key}
		step.do(b, key)
		b.DropUploads("a", keyspace.ContentKey{200}, key)
		commit(t, b)
		if hasContent(t, s, "a", key) != step.left {
			t.Errorf("%s: it is there: %v", step.what, !step.left)
		}
		if disk, known := notes(t, s); disk+known != 0 {
			t.Errorf("%s: %d notes are on disk, %d known", step.what, disk, known)
		}
	}
	checkStore(t, s)
}

// TestCompactionEndsUploads: content that a leaf refers to is noted as an
// upload no longer, so that it goes when the leaf does; one that waits for its
// document waits on.
func TestCompactionEndsUploads(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	data := noise(keyspace.ChunkSize+5, 1)
	w := newEdits()
	for range 2 {
		upload(t, s, "a", keyspace.ContentKey{1}, data)
		if w.seq == 0 {
			b := s.NewBatch()
			w.put(b, edit{id: "a", atts: uploadOf(keyspace.ContentKey{1}, data)})
			commit(t, b)
		}
	}
	upload(t, s, "a", keyspace.ContentKey{2}, data)
	compactStore(t, s)
	if disk, known := notes(t, s); disk != 1 || known != 1 {
		t.Errorf("%d notes are on disk, %d known", disk, known)
	}
	b := s.NewBatch()
	w.put(b, edit{id: "a"})
	commit(t, b)
	compactStore(t, s)
	if hasContent(t, s, "a", keyspace.ContentKey{1}) || !hasContent(t, s, "a", keyspace.ContentKey{2}) {
		t.Error("compaction left what nothing refers to, or took what waits for its document")
	}
}

// TestDeletedContentLeavesNoNote: not even one that is not known, which the
// second of two uploads leaves when the first is claimed while it is ingested.
func TestDeletedContentLeavesNoNote(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	upload(t, s, "a", keyspace.ContentKey{1}, noise(1000, 1))
	s.uploads.Drop(keyspace.Upload("a", keyspace.ContentKey{1}))
	compactStore(t, s)
	if disk, _ := notes(t, s); disk != 0 || hasContent(t, s, "a", keyspace.ContentKey{1}) {
		t.Errorf("%d notes are on disk", disk)
	}
	checkStore(t, s)
}
