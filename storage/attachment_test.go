package storage

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/keyspace"
)

func upload(tb testing.TB, s *Store, id string, key keyspace.ContentKey, data []byte) {
	tb.Helper()
	w, err := s.NewAttachment(id, key)
	must(tb, err)
	if n, err := w.Write(data); n != len(data) || err != nil {
		tb.Fatalf("Write = %d, %v", n, err)
	}
	must(tb, w.Close())
}

func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

func TestAttachmentRanges(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	data := noise(3*keyspace.ChunkSize+100, 1)
	key := keyspace.ContentKey{1}
	upload(t, s, "a", key, data)
	size := int64(len(data))
	for _, c := range []struct{ off, n, want int64 }{
		{0, -1, size},
		{0, size, size},
		{0, 0, 0},
		{size, -1, 0},
		{size + 5, -1, 0},
		{keyspace.ChunkSize, keyspace.ChunkSize, keyspace.ChunkSize},
		{keyspace.ChunkSize - 1, 2, 2},
		{2*keyspace.ChunkSize + 7, -1, size - 2*keyspace.ChunkSize - 7},
		{size - 1, 1, 1},
		{1 << 50, -1, 0},
	} {
		for _, how := range []string{"read", "write to"} {
			r, err := s.OpenAttachment("a", key, c.off, c.n)
			must(t, err)
			var got bytes.Buffer
			if how == "read" {
				_, err = io.Copy(&got, struct{ io.Reader }{r})
			} else {
				_, err = r.(io.WriterTo).WriteTo(&got)
			}
			want := data[min(c.off, size):min(c.off+c.want, size)]
			if err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s from %d, %d bytes: got %d, %v, want %d", how, c.off, c.n, got.Len(), err, c.want)
			}
			must(t, r.Close())
			must(t, r.Close())
		}
	}
	r, err := s.OpenAttachment("a", key, size-10, 11)
	must(t, err)
	if n, err := io.Copy(io.Discard, r); n != 10 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("beyond the end: %d, %v", n, err)
	}
	must(t, r.Close())
	for _, id := range []string{"a\x00", "", "b"} {
		if _, err := s.OpenAttachment(id, key, 0, -1); !fault.Is(err, fault.NotFound) {
			t.Errorf("document %q: %v", id, err)
		}
	}
	if _, err := s.OpenAttachment("a", keyspace.ContentKey{2}, 0, -1); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown content: %v", err)
	}
	if _, err := s.OpenAttachment("a", key, -1, -1); err == nil {
		t.Error("a negative offset was accepted")
	}
}

// TestAttachmentReaderKeepsItsMoment: deleting a content does not break who is
// reading it.
func TestAttachmentReaderKeepsItsMoment(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	big, small := noise(20*keyspace.ChunkSize, 2), noise(1000, 3)
	upload(t, s, "a", keyspace.ContentKey{1}, big)
	b := s.NewBatch()
	b.PutAttachment("a", keyspace.ContentKey{2}, small)
	commit(t, b)
	rb, err := s.OpenAttachment("a", keyspace.ContentKey{1}, 0, -1)
	must(t, err)
	rs, err := s.OpenAttachment("a", keyspace.ContentKey{2}, 0, -1)
	must(t, err)
	first := make([]byte, 10)
	_, err = io.ReadFull(rb, first)
	must(t, err)
	b = s.NewBatch()
	b.DeleteAttachment("a", keyspace.ContentKey{1})
	b.DeleteAttachment("a", keyspace.ContentKey{2})
	commit(t, b)
	must(t, s.inst.DB().Flush())
	must(t, s.inst.DB().Compact(t.Context(), []byte{0}, []byte{0xff}, false))
	for _, key := range []keyspace.ContentKey{{1}, {2}} {
		if _, err := s.OpenAttachment("a", key, 0, -1); !fault.Is(err, fault.NotFound) {
			t.Errorf("content %x is still there: %v", key, err)
		}
	}
	rest, err := io.ReadAll(rb)
	if err != nil || !bytes.Equal(append(first, rest...), big) {
		t.Errorf("big: %d bytes, %v", len(rest), err)
	}
	got, err := io.ReadAll(rs)
	if err != nil || !bytes.Equal(got, small) {
		t.Errorf("small: %d bytes, %v", len(got), err)
	}
	must(t, rb.Close())
	must(t, rs.Close())
	if s.uploads.Len() != 0 {
		t.Error("a deleted upload is still remembered")
	}
}

// TestAttachmentsAtOnce: many uploads to one store, beside edits.
func TestAttachmentsAtOnce(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	var wg sync.WaitGroup
	for i := range byte(6) {
		wg.Go(func() {
			for j := range byte(5) {
				upload(t, s, "doc", keyspace.ContentKey{i, j}, noise(keyspace.ChunkSize+int(i)*1000+int(j), uint64(i)))
			}
		})
	}
	putDocs(t, s, newEdits(), docsOf{500, 10, numbered})
	wg.Wait()
	for i := range byte(6) {
		for j := range byte(5) {
			r, err := s.OpenAttachment("doc", keyspace.ContentKey{i, j}, 0, -1)
			must(t, err)
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, noise(keyspace.ChunkSize+int(i)*1000+int(j), uint64(i))) {
				t.Errorf("content %d %d: %d bytes, %v", i, j, len(got), err)
			}
			must(t, r.Close())
		}
	}
	checkStore(t, s)
}

// TestAttachmentFiles: nothing lies beside the store after Close, Abort or a
// failure.
func TestAttachmentFiles(t *testing.T) {
	var on atomic.Bool
	mem := vfs.NewMem()
	e, _ := startEngine(t, Options{FS: failing(mem, &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
		return strings.HasSuffix(op.Path, uploadSuffix) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData)
	})})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s := acquire(t, e, testStore)
	left := func() (n int) {
		files, err := mem.List(s.inst.Dir)
		must(t, err)
		for _, f := range files {
			if strings.HasSuffix(f, uploadSuffix) {
				n++
			}
		}
		return n
	}
	data := noise(2*keyspace.ChunkSize, 1)
	upload(t, s, "a", keyspace.ContentKey{1}, data)
	if n := left(); n != 0 {
		t.Errorf("%d files after Close", n)
	}
	w, err := s.NewAttachment("a", keyspace.ContentKey{2})
	must(t, err)
	_, err = w.Write(data)
	must(t, err)
	if n := left(); n == 0 {
		t.Error("no file while writing")
	}
	must(t, w.Abort())
	must(t, w.Abort())
	if n := left(); n != 0 {
		t.Errorf("%d files after Abort", n)
	}
	on.Store(true)
	w, err = s.NewAttachment("a", keyspace.ContentKey{3})
	must(t, err)
	_, err = w.Write(data)
	must(t, err)
	if err := w.Close(); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("Close of an upload that cannot be synced: %v", err)
	}
	on.Store(false)
	if n := left(); n != 0 {
		t.Errorf("%d files after a failure", n)
	}
	if _, err := s.OpenAttachment("a", keyspace.ContentKey{3}, 0, -1); !fault.Is(err, fault.NotFound) {
		t.Errorf("the failed upload is there: %v", err)
	}
	if s.uploads.Len() != 1 {
		t.Errorf("%d uploads are remembered, want one", s.uploads.Len())
	}
	writeOne(t, s) // the store itself goes on
}

// TestUploadsAreSwept: what no document refers to goes when the process starts
// anew, what this process still works on stays.
func TestUploadsAreSwept(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	data := noise(keyspace.ChunkSize+5, 1)
	upload(t, s, "a", keyspace.ContentKey{1}, data)
	upload(t, s, "b", keyspace.ContentKey{2}, data)
	w := newEdits()
	b := s.NewBatch()
	w.put(b, edit{id: "a", atts: []doc.Attachment{{Name: "x", Key: keyspace.ContentKey{1}, StoredLength: int64(len(data))}}})
	commit(t, b)
	e.Release(s)
	must(t, e.cache.closeIdle(0))

	s, err = e.Acquire(testStore)
	must(t, err)
	r, err := s.OpenAttachment("b", keyspace.ContentKey{2}, 0, -1)
	must(t, err)
	must(t, r.Close())
	e.Release(s)
	stop()

	e, _ = startEngine(t, Options{FS: fs})
	s = acquire(t, e, testStore)
	if s.swept != 1 {
		t.Errorf("%d uploads swept, want 1", s.swept)
	}
	if _, err := s.OpenAttachment("b", keyspace.ContentKey{2}, 0, -1); !fault.Is(err, fault.NotFound) {
		t.Errorf("the upload nobody refers to: %v", err)
	}
	r, err = s.OpenAttachment("a", keyspace.ContentKey{1}, 0, -1)
	must(t, err)
	must(t, r.Close())
	checkStore(t, s)
}
