package shard

import (
	"context"
	"fmt"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

func errMissing() *fault.Error { return fault.New(fault.NotFound, reasonMissing) }

// Open reads one revision of one document. The error is fault.NotFound
// "missing" when the document or the revision is not here, "deleted" when the
// winner is a tombstone and AllowDeleted is not set.
func (l *Local) Open(ctx context.Context, req OpenRequest) (*Doc, error) {
	store, err := l.states.pin(ctx, req.Copy)
	if err != nil {
		return nil, err
	}
	defer l.states.engine.Release(store)
	if req.Latest {
		req.Rev = doc.Rev{}
	}
	o := opener{states: l.states, store: store, req: &req}
	for tries := 0; ; tries++ {
		var d *Doc
		switch {
		case !req.Rev.IsZero():
			d, err = o.revision(ctx)
		case req.plain():
			d, err = o.plain(ctx)
		default:
			d, err = o.winner(ctx)
		}
		// A newer revision may win and compaction, a purge or stemming drop
		// this one's content between the reading of the record and that of
		// the content.
		if !fault.Is(err, fault.Corruption) || tries == rereads {
			return d, err
		}
	}
}

// plain reports whether everything asked for is in the head of the record and
// the content.
func (r *OpenRequest) plain() bool {
	return !r.Revs && !r.RevsInfo && !r.Conflicts && !r.DeletedConflicts
}

// opener reads for one OpenRequest.
type opener struct {
	states *copyStates
	store  *storage.Store
	req    *OpenRequest
}

// waitDurable returns when what was read at that sequence is durable; found tells
// whether there was a document. That there is none may be the work of a purge,
// which leaves no sequence behind.
func (o *opener) waitDurable(ctx context.Context, seq uint64, found bool) error {
	if !found {
		return o.states.waitUnsequenced(ctx, o.req.Copy)
	}
	return o.states.waitDurable(ctx, o.req.Copy, seq)
}

// plain reads the winner by one lookup, without decoding the tree.
func (o *opener) plain(ctx context.Context) (*Doc, error) {
	var h doc.Head
	read := o.store.Reader().Head
	if o.req.RevOnly {
		read = o.store.Reader().Front
	}
	ok, err := read(o.req.ID, &h)
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", o.req.ID, err)
	}
	if err := o.waitDurable(ctx, h.Seq, ok); err != nil {
		return nil, err
	}
	switch {
	case !ok:
		return nil, errMissing()
	case h.Deleted && !o.req.AllowDeleted:
		return nil, fault.New(fault.Deleted, reasonDeleted)
	}
	d := &Doc{ID: o.req.ID, Rev: h.Winner, Deleted: h.Deleted}
	if o.req.LocalSeq {
		d.LocalSeq = h.Seq
	}
	if o.req.RevOnly {
		return d, nil
	}
	return d, o.readContent(d, h.Inline)
}

// winner reads the winner and what its tree tells.
func (o *opener) winner(ctx context.Context) (*Doc, error) {
	rec, err := o.record(ctx, o.req.Revs || o.req.RevsInfo)
	if err != nil {
		return nil, err
	}
	if rec.Deleted && !o.req.AllowDeleted {
		return nil, fault.New(fault.Deleted, reasonDeleted)
	}
	d := &Doc{ID: o.req.ID, Rev: rec.Winner, Deleted: rec.Deleted}
	if o.req.LocalSeq {
		d.LocalSeq = rec.Seq
	}
	if o.req.Revs {
		d.Revisions = rec.Tree.Path(rec.Winner, o.req.RevsLimit)
	}
	if o.req.RevsInfo {
		d.RevsInfo = revsInfo(&rec.Tree, rec.Winner, o.req.RevsLimit)
	}
	if o.req.Conflicts || o.req.DeletedConflicts {
		live, deleted := losers(&rec.Tree)
		if o.req.Conflicts {
			d.Conflicts = live
		}
		if o.req.DeletedConflicts {
			d.DeletedConflicts = deleted
		}
	}
	return d, o.readContent(d, rec.Inline)
}

// revision reads the revision the client named: any whose content is stored,
// tombstones too.
func (o *opener) revision(ctx context.Context) (*Doc, error) {
	rec, err := o.record(ctx, o.req.Revs)
	if err == nil && rec.Partial && o.req.Rev.Pos < rec.Below.Tip {
		rec, err = o.record(ctx, true)
	}
	if err != nil {
		return nil, err
	}
	n, _, ok := rec.Tree.Find(o.req.Rev)
	if !ok || !n.Stored {
		return nil, errMissing()
	}
	d := &Doc{ID: o.req.ID, Rev: n.Rev, Deleted: n.Deleted}
	if o.req.Revs {
		d.Revisions = rec.Tree.Path(n.Rev, o.req.RevsLimit)
	}
	if n.Rev == rec.Winner {
		return d, o.readContent(d, rec.Inline)
	}
	return d, o.readContent(d, nil)
}

// record reads the record, with its whole history or what it has at hand of it.
func (o *opener) record(ctx context.Context, whole bool) (*doc.Record, error) {
	look := o.store.Reader().Tip
	if whole {
		look = o.store.Reader().Record
	}
	rec, ok, err := look(o.req.ID)
	if err != nil {
		return nil, fmt.Errorf("read document %q: %w", o.req.ID, err)
	}
	if err := o.waitDurable(ctx, rec.Seq, ok); err != nil {
		return nil, err
	}
	if !ok {
		return nil, errMissing()
	}
	return &rec, nil
}

// readContent adds body and attachments, from the record when they are inside it.
func (o *opener) readContent(d *Doc, inline []byte) error {
	if err := readContent(o.store.Reader(), d, inline); err != nil {
		return err
	}
	if o.req.HeadOnly {
		d.Body = nil
	}
	return nil
}

// readContent adds body and attachments to a document of which ID and Rev are
// known. inline, when not nil, is its encoded content.
func readContent(from reader, d *Doc, inline []byte) error {
	var v doc.Revision
	var err error
	if inline != nil {
		if v, err = doc.DecodeRevision(inline); err != nil {
			return fmt.Errorf("read revision %s of %q: %w", d.Rev, d.ID, err)
		}
	} else if v, err = readRevision(from, d.ID, d.Rev); err != nil {
		return err
	}
	d.Body, d.Atts = v.Body, v.Atts
	return nil
}

// revsInfo tells what is left of a revision and its ancestors, newest first.
func revsInfo(t *doc.Tree, r doc.Rev, limit int) []RevInfo {
	line := t.Lineage(r)
	if limit > 0 && len(line) > limit {
		line = line[:limit]
	}
	infos := make([]RevInfo, len(line))
	for i, n := range line {
		infos[i] = RevInfo{Rev: n.Rev, Status: StatusMissing}
		switch {
		case n.Stored && n.Deleted:
			infos[i].Status = StatusDeleted
		case n.Stored:
			infos[i].Status = StatusAvailable
		}
	}
	return infos
}

// losers returns the leaves that do not win, live and deleted ones, best
// first.
func losers(t *doc.Tree) (live, deleted []doc.Rev) {
	for i, n := range t.Leaves() {
		switch {
		case i == 0:
		case n.Deleted:
			deleted = append(deleted, n.Rev)
		default:
			live = append(live, n.Rev)
		}
	}
	return live, deleted
}
