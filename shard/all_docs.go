package shard

import (
	"context"
	"fmt"

	"divan/storage"
	"divan/storage/doc"
)

// RowBatch holds rows of a DocStream. It is meant to be used again: everything
// in it but strings is valid until the next call of Next with it.
type RowBatch struct {
	Rows  []Row
	arena arena
}

// DocStream lists live documents in the order of their ids, all of one snapshot.
// It is used by one goroutine and holds that snapshot until it is closed.
type DocStream struct {
	Total  uint64   // live documents in the copy
	Before uint64   // live documents before the range, in the direction of the listing
	Seq    uint64   // of the snapshot
	UUID   [16]byte // of the copy

	ctx  context.Context // of the request
	req  DocsRequest
	snap *storage.Snapshot
	it   *storage.Docs
	some bool // it stands on a row that has not been given out
	init bool // it has been positioned
}

// AllDocs opens a listing; close it. Design documents are in it: _design_docs
// is the range from "_design/" to "_design0".
func (l *Local) AllDocs(ctx context.Context, req DocsRequest) (*DocStream, error) {
	snap, uuid, err := l.states.snapshot(ctx, req.Copy)
	if err != nil {
		return nil, err
	}
	s := &DocStream{ctx: ctx, req: req, snap: snap, Seq: snap.Seq(), UUID: uuid, Total: snap.Counters().Live}
	s.it, s.Before, err = snap.Listing(req.bounds(), req.IncludeDocs)
	switch {
	case req.Desc && req.HasHi && req.bounds().Hi == "":
		s.Before = s.Total // storage reads it as no bound; no id is below
	case req.Desc:
		s.Before = s.Total - s.Before
	}
	if err != nil {
		_ = snap.Close()
		return nil, fmt.Errorf("list %s: %w", req.Copy, err)
	}
	return s, nil
}

// bounds turns the bounds of a request, of either kind, into [Lo, Hi). The
// first id after x is x and a zero byte.
func (r *DocsRequest) bounds() storage.Range {
	out := storage.Range{Lo: r.Lo, Desc: r.Desc}
	if r.LoExclusive {
		out.Lo += "\x00"
	}
	if r.HasHi {
		out.Hi = r.Hi
		if !r.HiExclusive {
			out.Hi += "\x00"
		}
	}
	return out
}

// empty reports whether no id can be in the range: storage reads an empty
// upper bound as none.
func (r *DocsRequest) empty() bool {
	return r.HasHi && (r.Hi == "" || r.Lo > r.Hi)
}

// Next fills the batch with the next rows. more is false when there are none
// after it; the batch may then still hold rows. It fails when the request's
// context ends.
func (s *DocStream) Next(b *RowBatch) (more bool, err error) {
	size := batchSize(s.req.Limit)
	b.arena.reset(size, s.req.IncludeDocs)
	if cap(b.Rows) < size {
		b.Rows = make([]Row, 0, size)
	}
	b.Rows = b.Rows[:0]
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if !s.init {
		s.init = true
		s.some = !s.req.empty() && s.it.First()
	}
	for skipped := 0; s.some && len(b.Rows) < size && !b.arena.full(); s.some = s.it.NextLive() {
		h := s.it.Head()
		if h.Deleted {
			if skipped++; skipped%batchRows == 0 && s.ctx.Err() != nil {
				return false, s.ctx.Err()
			}
			continue
		}
		b.arena.addID(s.it.ID())
		b.Rows = append(b.Rows, Row{Rev: h.Winner})
		if s.req.IncludeDocs {
			if err := s.addDoc(b, h); err != nil {
				return false, err
			}
		}
	}
	if err := s.it.Err(); err != nil {
		return false, fmt.Errorf("list %s: %w", s.req.Copy, err)
	}
	b.finish()
	return s.some, nil
}

// addDoc adds the document of the row the iterator stands on.
func (s *DocStream) addDoc(b *RowBatch, h *doc.Head) error {
	id := ""
	if h.Inline == nil {
		id = string(s.it.ID())
	}
	d, err := b.arena.addDoc(s.snap, id, h.Winner, false, h.Inline)
	if err != nil {
		return err
	}
	b.Rows[len(b.Rows)-1].Doc = d
	if !s.req.Conflicts && !s.req.DeletedConflicts {
		return nil
	}
	live, deleted, err := losersAt(s.it)
	if err != nil {
		return fmt.Errorf("list %s: %w", s.req.Copy, err)
	}
	if s.req.Conflicts {
		d.Conflicts = live
	}
	if s.req.DeletedConflicts {
		d.DeletedConflicts = deleted
	}
	return nil
}

// losersAt returns the leaves that lost of the document that an iterator stands on.
func losersAt(it *storage.Docs) (live, deleted []doc.Rev, err error) {
	branched, err := it.Branched()
	if err != nil || !branched {
		return nil, nil, err
	}
	rec, err := it.Record()
	if err != nil {
		return nil, nil, err
	}
	live, deleted = losers(&rec.Tree)
	return live, deleted, nil
}

// finish gives the rows their ids and the documents their bodies.
func (b *RowBatch) finish() {
	b.arena.setBodies()
	b.arena.eachID(func(i int, id string) {
		b.Rows[i].ID = id
		if d := b.Rows[i].Doc; d != nil {
			d.ID = id
		}
	})
}

// Close releases the snapshot. It may be called more than once.
func (s *DocStream) Close() {
	if s.it != nil {
		_ = s.it.Close() // read only: nothing to lose
		_ = s.snap.Close()
		s.it = nil
	}
}

// ByIDOptions say what DocsByID answers with.
type ByIDOptions struct {
	IncludeDocs bool
	Conflicts   bool // with IncludeDocs: fill in Doc.Conflicts
	// MaxBytes, with IncludeDocs, bounds the documents of an answer (Doc.Size): it ends with the
	// one that reaches the bound. 0: no bound.
	MaxBytes int
}

// DocsByID looks documents up and answers in the order of ids, repetitions
// included (_all_docs with keys): live, deleted and missing ones. Deleted ones
// have no Doc (golden docs/11). With MaxBytes there may be fewer rows than ids:
// those of the first ones, at least one.
func (l *Local) DocsByID(ctx context.Context, name string, ids []string, o ByIDOptions) ([]Row, error) {
	snap, _, err := l.states.snapshot(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = snap.Close() }() // read only: nothing to lose
	rows, held := make([]Row, len(ids)), 0
	for i, id := range ids {
		if i%batchRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if o.MaxBytes > 0 && held >= o.MaxBytes {
			return rows[:i:i], nil
		}
		if rows[i], err = rowByID(snap, id, o.IncludeDocs, o.Conflicts); err != nil {
			return nil, err
		}
		held += rows[i].Doc.Size()
	}
	return rows, nil
}

func rowByID(snap *storage.Snapshot, id string, includeDocs, conflicts bool) (Row, error) {
	var h doc.Head
	ok, err := snap.Head(id, &h)
	if err != nil {
		return Row{}, fmt.Errorf("read document %q: %w", id, err)
	}
	row := Row{ID: id, Rev: h.Winner, Deleted: h.Deleted, Missing: !ok}
	if !ok || h.Deleted || !includeDocs {
		return row, nil
	}
	row.Doc = &Doc{ID: id, Rev: h.Winner}
	if err := readContent(snap, row.Doc, h.Inline); err != nil || !conflicts {
		return row, err
	}
	rec, _, err := snap.Tip(id)
	if err != nil {
		return Row{}, fmt.Errorf("read document %q: %w", id, err)
	}
	row.Doc.Conflicts, _ = losers(&rec.Tree)
	return row, nil
}
