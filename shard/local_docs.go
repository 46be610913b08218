package shard

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// LocalBatch holds rows of a LocalStream, valid until the next call of Next
// with it.
type LocalBatch struct {
	Rows  []LocalDoc
	arena arena
}

// LocalStream lists local documents in the order of their ids, all of one
// snapshot. It is used by one goroutine and holds that snapshot until it is
// closed.
type LocalStream struct {
	ctx  context.Context // of the request
	req  LocalDocsRequest
	snap *storage.Snapshot
	it   *storage.Locals
	some bool
	init bool
}

// List opens a listing of local documents; close it.
func (l *LocalDocs) List(ctx context.Context, req LocalDocsRequest) (*LocalStream, error) {
	snap, _, err := l.states.snapshot(ctx, req.Copy)
	if err != nil {
		return nil, err
	}
	it, err := snap.Locals(req.docs().bounds())
	if err != nil {
		_ = snap.Close()
		return nil, fmt.Errorf("list local documents of %s: %w", req.Copy, err)
	}
	return &LocalStream{ctx: ctx, req: req, snap: snap, it: it}, nil
}

// docs is the request for the same ids of regular documents: one kind of
// bounds is enough.
func (r *LocalDocsRequest) docs() *DocsRequest {
	return &DocsRequest{
		Lo: r.Lo, LoExclusive: r.LoExclusive, Hi: r.Hi, HasHi: r.HasHi, HiExclusive: r.HiExclusive, Desc: r.Desc,
	}
}

// isSystem reports whether a local document is a checkpoint of the server
// itself, hidden from _local_docs (semantics.md section 3).
func isSystem(id []byte) bool {
	return bytes.HasPrefix(id, []byte(localPrefix+"shard-sync-")) || bytes.HasPrefix(id, []byte(PurgePrefix))
}

// Next fills the batch with the next rows. more is false when there are none
// after it.
func (s *LocalStream) Next(b *LocalBatch) (more bool, err error) {
	b.arena.reset(0, false)
	b.Rows = b.Rows[:0]
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if !s.init {
		s.init = true
		s.some = !s.req.docs().empty() && s.it.First()
	}
	for ; s.some && len(b.Rows) < batchRows && !b.arena.full(); s.some = s.it.Next() {
		id := s.it.ID()
		if !s.req.System && isSystem(id) {
			continue
		}
		d, err := decodeLocal(string(id), s.it.Value())
		if err != nil {
			return false, err
		}
		at := len(b.arena.bodies)
		b.arena.bodies = append(b.arena.bodies, d.Body...)
		b.arena.spans = append(b.arena.spans, span{doc: len(b.Rows), from: at, to: len(b.arena.bodies)})
		b.Rows = append(b.Rows, d)
	}
	if err := s.it.Err(); err != nil {
		return false, fmt.Errorf("list local documents of %s: %w", s.req.Copy, err)
	}
	for _, p := range b.arena.spans {
		b.Rows[p.doc].Body = b.arena.bodies[p.from:p.to:p.to]
	}
	return s.some, nil
}

// Close releases the snapshot. It may be called more than once.
func (s *LocalStream) Close() {
	if s.it != nil {
		_ = s.it.Close() // read only: nothing to lose
		_ = s.snap.Close()
		s.it = nil
	}
}

// localEdit is the write of one local document.
type localEdit struct {
	id    string
	value []byte // nil: delete
}

func (e *localEdit) write(b *storage.Batch) {
	if e.value == nil {
		b.DeleteLocal(e.id)
		return
	}
	b.PutLocal(e.id, e.value)
}

// decideLocal decides the write of a local document and returns its revision: it only
// counts on from the revision that the edit names, not from the stored one
// (semantics.md section 3, golden local/01, bulk/03).
func decideLocal(e *Edit) (localEdit, doc.Rev, error) {
	rev := e.Parent
	if len(e.Path.IDs) > 0 {
		rev = e.Path.Rev()
	}
	n, err := localCount(rev)
	switch {
	case err != nil:
		return localEdit{}, doc.Rev{}, err
	case e.Deleted:
		return localEdit{id: e.ID}, localRev(0), nil
	}
	body := doc.StoredBody(e.Body)
	value := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(body)), n+1)
	return localEdit{id: e.ID, value: append(value, body...)}, localRev(n + 1), nil
}

// localRev is 0-n.
func localRev(n uint64) doc.Rev { return doc.Rev{ID: strconv.FormatUint(n, 10)} }

// localCount returns the n of 0-n, 0 for no revision at all.
func localCount(r doc.Rev) (uint64, error) {
	if r.IsZero() {
		return 0, nil
	}
	n, err := strconv.ParseUint(r.ID, 10, 63)
	if err != nil || r.Pos != 0 {
		return 0, fault.New(fault.BadRequest, reasonBadRev)
	}
	return n, nil
}

// decodeLocal reads a stored local document. Body aliases value.
func decodeLocal(id string, value []byte) (LocalDoc, error) {
	n, size := binary.Uvarint(value)
	if size <= 0 {
		return LocalDoc{}, fault.Newf(fault.Corruption, "local document %q does not decode", id)
	}
	return LocalDoc{ID: id, Rev: n, Body: value[size:]}, nil
}

// LocalDocs is the local documents of copies.
type LocalDocs struct {
	states *copyStates
}

// Get reads a local document, id with "_local/"; fault.NotFound "missing"
// when it is not there.
func (l *LocalDocs) Get(ctx context.Context, name, id string) (*LocalDoc, error) {
	store, err := l.states.pin(ctx, name)
	if err != nil {
		return nil, err
	}
	defer l.states.engine.Release(store)
	value, ok, err := store.Reader().Local(id)
	if err != nil {
		return nil, fmt.Errorf("read %q of %s: %w", id, name, err)
	}
	if err := l.states.waitUnsequenced(ctx, name); err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, reasonMissing)
	}
	d, err := decodeLocal(id, value)
	if err != nil {
		return nil, err
	}
	return &d, nil
}

// Put writes a local document, id with "_local/"; rev is the revision that the
// client named (zero: none). It returns the new revision, 0-N. The error for a
// revision that is no count is fault.BadRequest.
func (l *LocalDocs) Put(ctx context.Context, name, id string, rev doc.Rev, body []byte) (doc.Rev, error) {
	return l.edit(ctx, name, Edit{ID: id, Parent: rev, Body: body})
}

// Delete removes a local document and returns 0-0; fault.NotFound
// "missing" when it is not there.
func (l *LocalDocs) Delete(ctx context.Context, name, id string, rev doc.Rev) (doc.Rev, error) {
	if _, err := l.Get(ctx, name, id); err != nil {
		return doc.Rev{}, err
	}
	return l.edit(ctx, name, Edit{ID: id, Parent: rev, Deleted: true})
}

// edit writes one local document. What is stored does not matter for it.
func (l *LocalDocs) edit(ctx context.Context, name string, e Edit) (doc.Rev, error) {
	w, rev, err := decideLocal(&e)
	if err != nil {
		return doc.Rev{}, err
	}
	at, err := l.states.open(ctx, name)
	if err != nil {
		return doc.Rev{}, err
	}
	defer at.Close()
	return rev, l.states.submit(ctx, at.store, &localTask{w}, false)
}

// localTask writes one local document.
type localTask struct{ edit localEdit }

// cost implements task.
func (t *localTask) cost() (edits, bytes int) { return 1, len(t.edit.value) }

// stage implements task.
func (t *localTask) stage(g *groupCommit) error {
	g.locals = append(g.locals, t.edit)
	return nil
}
