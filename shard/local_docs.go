package shard

import (
	"bytes"
	"context"
	"fmt"

	"divan/storage"
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
