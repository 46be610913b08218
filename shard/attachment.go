package shard

import (
	"context"
	"fmt"
	"io"
	"sync"

	"divan/storage"
)

// AttachmentSink takes the content of one attachment. Close makes it durable,
// Abort drops it, also after a failed Write or Close; Abort after a successful
// Close does nothing. One of them has to be called.
type AttachmentSink interface {
	io.Writer
	Close() error
	Abort()
}

// Attachments is the contents of attachments in copies.
type Attachments struct {
	states *copyStates
}

// Put opens a sink for large content of a document that an edit will
// refer to by key, in any number at once. Until a revision refers to it the
// content survives compaction, but not a restart, and can be dropped again with
// Drop.
func (a *Attachments) Put(ctx context.Context, name, id string, key [16]byte) (AttachmentSink, error) {
	store, err := a.states.pin(ctx, name)
	if err != nil {
		return nil, err
	}
	w, err := store.NewAttachment(id, key)
	if err != nil {
		a.states.engine.Release(store)
		return nil, fmt.Errorf("store an attachment of %q in %s: %w", id, name, err)
	}
	return &attachmentWriter{states: a.states, store: store, w: w}, nil
}

// attachmentWriter keeps the store pinned while content comes in.
type attachmentWriter struct {
	states *copyStates
	store  *storage.Store
	w      *storage.AttachmentWriter
	once   sync.Once // releases the pin
}

// Write implements io.Writer.
func (w *attachmentWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		return n, fmt.Errorf("store an attachment: %w", err)
	}
	return n, nil
}

// Close implements AttachmentSink.
func (w *attachmentWriter) Close() error {
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("store an attachment: %w", err)
	}
	w.release()
	return nil
}

// Abort implements AttachmentSink.
func (w *attachmentWriter) Abort() {
	w.once.Do(func() {
		_ = w.w.Abort() // nothing refers to it: what is left goes with compaction
		w.states.engine.Release(w.store)
	})
}

func (w *attachmentWriter) release() { w.once.Do(func() { w.states.engine.Release(w.store) }) }

// Read streams stored bytes. The caller closes the reader.
// fault.NotFound when there is no such content.
func (a *Attachments) Read(ctx context.Context, r AttachmentRange) (io.ReadCloser, error) {
	store, err := a.states.pin(ctx, r.Copy)
	if err != nil {
		return nil, err
	}
	content, err := store.OpenAttachment(r.ID, r.Key, r.Offset, r.Length)
	if err != nil {
		a.states.engine.Release(store)
		return nil, fmt.Errorf("read an attachment of %q in %s: %w", r.ID, r.Copy, err)
	}
	return &pinnedReader{ReadCloser: content, states: a.states, store: store}, nil
}

// pinnedReader keeps the store pinned while content is read.
type pinnedReader struct {
	io.ReadCloser
	states *copyStates
	store  *storage.Store
	once   sync.Once
}

// WriteTo implements io.WriterTo: without it io.Copy would take a way by a buffer
// of 32 KB.
func (r *pinnedReader) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, r.ReadCloser) }

// Close implements io.Closer.
func (r *pinnedReader) Close() error {
	err := r.ReadCloser.Close()
	r.once.Do(func() { r.states.engine.Release(r.store) })
	if err != nil {
		return fmt.Errorf("read an attachment: %w", err)
	}
	return nil
}

// Drop removes content that Put stored, after the edit it
// was meant for has been refused. What a revision of this copy refers to stays:
// another copy may have refused the edit, or another shard the request.
func (a *Attachments) Drop(ctx context.Context, name, id string, keys [][16]byte) error {
	if len(keys) == 0 {
		return nil
	}
	at, err := a.states.open(ctx, name)
	if err != nil {
		return err
	}
	defer at.Close()
	return a.states.submit(ctx, at.store, &dropTask{id: id, keys: keys}, false)
}

type dropTask struct {
	id   string
	keys [][16]byte
}

func (t *dropTask) cost() (edits, bytes int) { return len(t.keys), 0 }

func (t *dropTask) stage(g *groupCommit) error {
	g.discard = append(g.discard, t)
	return nil
}
