package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/instance"
	"divan/storage/keyspace"
)

// AttachmentWriter streams one content into sstables beside the store, so that
// its bytes are written once, not three times, and pass neither log nor
// memtable. Close makes them part of the store, durable on return; Abort drops
// them. One of the two must be called. A writer belongs to one goroutine; many
// may work on one store.
//
// Content that no document came to refer to is deleted when the store is next
// opened after a crash, or by Batch.DropUploads.
type AttachmentWriter struct {
	s     *Store
	db    *pebble.DB
	id    string
	key   keyspace.ContentKey
	chunk uint32 // number of the next chunk
	buf   []byte // bytes that are no whole chunk yet
	kbuf  []byte
	paths []string
	table *sstable.Writer
	size  int // bytes in table
	err   error
	done  bool
}

// tableBytes is the size at which a content goes on in another sstable.
const tableBytes = 64 << 20

// NewAttachment begins the content with that key, which the caller chooses and
// uses for this content only, though it may come more than once. It pins the
// store until Close or Abort.
func (s *Store) NewAttachment(id string, key [16]byte) (*AttachmentWriter, error) {
	db, err := s.writable(false)
	if err != nil {
		return nil, err
	}
	s.cache.pin(&s.handle)
	return &AttachmentWriter{s: s, db: db, id: id, key: key}, nil
}

// Write implements io.Writer. The error is fault.InsufficientStorage when the
// disk is full.
func (w *AttachmentWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && w.err == nil {
		if len(w.buf) == 0 && len(p) >= keyspace.ChunkSize {
			w.put(p[:keyspace.ChunkSize])
			p = p[keyspace.ChunkSize:]
			continue
		}
		part := min(keyspace.ChunkSize-len(w.buf), len(p))
		w.buf = append(w.buf, p[:part]...)
		p = p[part:]
		if len(w.buf) == keyspace.ChunkSize {
			w.put(w.buf)
			w.buf = w.buf[:0]
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return n, nil
}

// put writes one chunk.
func (w *AttachmentWriter) put(data []byte) {
	if w.table != nil && w.size >= tableBytes {
		w.fail(w.table.Close())
		w.table = nil
	}
	if w.table == nil && w.err == nil {
		w.begin()
	}
	if w.err != nil {
		return
	}
	w.kbuf = keyspace.AppendChunk(w.kbuf[:0], w.id, w.key, w.chunk)
	w.fail(w.table.Set(w.kbuf, data))
	w.chunk++
	w.size += len(data)
}

// begin starts the next sstable.
func (w *AttachmentWriter) begin() {
	wo := w.s.inst.WriterOptions(storeKind())
	// What compresses is compressed by the caller, and a filter would be asked
	// for chunks that exist.
	wo.Compression = sstable.NoCompression
	if w.s.env.o.RowTables {
		wo.TableFormat = sstable.TableFormatPebblev4 // the last format with blocks of rows
	}
	wo.FilterPolicy = pebble.NoFilterPolicy
	path, table, err := createUpload(&w.s.handle, wo)
	if err != nil {
		w.fail(err)
		return
	}
	w.paths = append(w.paths, path)
	w.table, w.size = table, 0
}

// createUpload begins a table beside the store, which opening it removes after a crash.
func createUpload(s *handle, o sstable.WriterOptions) (path string, w *sstable.Writer, err error) {
	var name [12]byte
	_, _ = rand.Read(name[:]) // never fails
	path = s.env.o.FS.PathJoin(s.inst.Dir, hex.EncodeToString(name[:])+uploadSuffix)
	f, err := s.env.o.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", nil, err
	}
	// Written back while the upload goes on, so that the final sync is short.
	f = vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: 1 << 20})
	return path, sstable.NewWriter(objstorageprovider.NewFileWritable(f), o), nil
}

// fail keeps the first error.
func (w *AttachmentWriter) fail(err error) {
	if w.err == nil && err != nil {
		w.err = instance.DiskError("write attachment", err)
	}
}

// Close writes the rest and makes the content part of the store, durable on
// return. After an error nothing of it is left.
func (w *AttachmentWriter) Close() error {
	if w.done {
		return w.err
	}
	w.done = true
	defer w.s.cache.release(&w.s.handle)
	if len(w.buf) > 0 || w.chunk == 0 {
		w.put(w.buf)
	}
	w.finish()
	upload := keyspace.Upload(w.id, w.key)
	w.mark(upload)
	w.fail(w.s.Err())
	if w.err == nil {
		// Known before it can be found, so that no compaction takes it for
		// garbage.
		w.s.uploads.Add(upload)
		//nolint:forbidigo // only traced; an ingestion cannot be given up half way
		w.fail(w.db.Ingest(context.Background(), w.paths))
		if w.err == nil {
			return nil
		}
		w.s.uploads.Drop(upload)
	}
	return errors.Join(w.err, w.remove())
}

// finish closes the sstable being written; it is synced then.
func (w *AttachmentWriter) finish() {
	if w.table != nil {
		w.fail(w.table.Close())
		w.table = nil
	}
}

// mark writes the entry that says the content is an upload, as an sstable of
// its own: beside the chunks it would stretch theirs over every other keyspace.
func (w *AttachmentWriter) mark(upload []byte) {
	if w.err == nil {
		w.begin()
	}
	if w.err == nil {
		w.fail(w.table.Set(upload, nil))
		w.finish()
	}
}

// Abort drops what was written.
func (w *AttachmentWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	defer w.s.cache.release(&w.s.handle)
	w.finish()
	return w.remove()
}

// remove deletes the files.
func (w *AttachmentWriter) remove() error {
	var errs []error
	if w.table != nil {
		_ = w.table.Close() // the file goes anyway
		w.table = nil
	}
	for _, path := range w.paths {
		if err := w.s.env.o.FS.Remove(path); err != nil {
			errs = append(errs, fmt.Errorf("remove upload: %w", err))
		}
	}
	return errors.Join(errs...)
}
