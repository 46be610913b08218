package cluster

import (
	"context"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Update writes edits, which may belong to any shards, and answers each in the
// order given. For every edit: Err nil and not Accepted means that W copies
// have it durable (201); Accepted that fewer do, but at least one (202); Err a
// *fault.Error that it was refused and left no trace; any other Err that no
// copy answered. An error of Update itself says that no edit got an answer, or
// that a stub without its attachment refuses the whole request
// (fault.MissingStub), though edits of other shards may be done: when they have
// answers, those come along with the error. It is the error of single edits where a
// copy that was behind has done others of the same shard.
//
// Edits of one document are decided in the order given. Edits of different
// shards are not atomic together.
func (d *DB) Update(ctx context.Context, o UpdateOptions, edits []shard.Edit) ([]shard.EditResult, error) {
	if len(edits) == 0 {
		return nil, nil
	}
	if changesDesign(edits) {
		defer d.c.design(ctx, d)
	}
	before := d.noCopies.Load()
	var results []shard.EditResult
	var err error
	if s := d.soleOwner(edits); s != nil {
		results, err = d.write(ctx, s, o, edits)
		err = d.phrase(err)
	} else {
		results, err = d.updateMany(ctx, o, edits)
	}
	d.c.figures.Updated(len(edits), results, err, Refusal)
	if gone := d.stillThere(ctx, before); gone != nil {
		return nil, gone
	}
	return results, err
}

// Refusal reports whether the error of an edit says that it was refused and has
// left no trace. After any other one it may have been written, be written still, or
// be taken another time.
func Refusal(err error) bool {
	switch fault.KindOf(err) {
	case 0, fault.Internal, fault.Timeout, fault.Unavailable, fault.NodeDown, fault.Closed,
		fault.InsufficientStorage, fault.Corruption, fault.NoDatabase, fault.NoCopy, fault.Busy:
		return false
	default:
		return true
	}
}

func changesDesign(edits []shard.Edit) bool {
	for i := range edits {
		if strings.HasPrefix(edits[i].ID, doc.DesignPrefix) {
			return true
		}
	}
	return false
}

// soleOwner returns the segment that all edits belong to, nil when there are
// several.
func (d *DB) soleOwner(edits []shard.Edit) *segment {
	first := d.ownerIndex(edits[0].ID)
	for i := range edits[1:] {
		if d.ownerIndex(edits[i+1].ID) != first {
			return nil
		}
	}
	return &d.segments[first]
}

// updateMany sends each shard its edits in one message, all shards at once.
func (d *DB) updateMany(ctx context.Context, o UpdateOptions, edits []shard.Edit) ([]shard.EditResult, error) {
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	groups := d.group(len(edits), func(i int) string { return edits[i].ID })
	results := make([]shard.EditResult, len(edits))
	errs := make([]error, len(groups))
	_ = fanout.Each(len(groups), func(g int) error { // the errors are in errs
		mine := make([]shard.Edit, len(groups[g].items))
		for i, at := range groups[g].items {
			mine[i] = edits[at]
		}
		var answers []shard.EditResult
		answers, errs[g] = d.write(ctx, groups[g].segment, o, mine)
		failure := d.phrase(errs[g])
		for i, at := range groups[g].items {
			if failure != nil {
				results[at] = shard.EditResult{Err: failure}
				continue
			}
			results[at] = answers[i]
		}
		return nil
	})
	failed := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case quorum.Usable(err):
			return results, err // a stub without its attachment refuses the whole request (semantics.md section 2.6)
		default:
			failed++
		}
	}
	if failed == len(groups) {
		return nil, d.phrase(worst(errs))
	}
	return results, nil
}

// worst returns the first error that is more than the lack of a copy: it may
// stand for edits that were done.
func worst(errs []error) error {
	for _, err := range errs {
		if !fault.Is(err, fault.NoCopy) {
			return err
		}
	}
	return errs[0]
}

// write brings the edits of one segment to its copies. The error is that of
// every edit: none of them got an answer from any copy.
func (d *DB) write(ctx context.Context, s *segment, o UpdateOptions, edits []shard.Edit) ([]shard.EditResult, error) {
	req := shard.UpdateRequest{
		Edits: edits, NewEdits: o.NewEdits, Limits: d.limits(), User: o.User,
		DB: d.meta.Name, Security: d.meta.Security, Delayed: o.Delayed,
	}
	if len(s.copies) > 1 {
		return d.writeCopies(ctx, s, o.W, req)
	}
	return d.writeCopy(ctx, s.copies[0], o.W, req)
}

// writeCopy is write for the only copy there is.
func (d *DB) writeCopy(ctx context.Context, t fanout.Target, w int, req shard.UpdateRequest) ([]shard.EditResult, error) {
	rep := d.c.replica(t)
	if rep.Away() {
		return nil, fanout.NoCopy()
	}
	if t.Node != d.c.node {
		var cancel context.CancelFunc
		ctx, cancel = d.c.deadline(ctx)
		defer cancel()
	}
	req.Copy, req.NoPath, req.Insist = t.Name, true, true // nobody follows, and nobody else is asked
	results, err := replica.Update.On(ctx, rep, req)
	if err != nil {
		d.noteNoCopy(err)
		return nil, err
	}
	for i := range results {
		q := quorum.NewWrite(1, w)
		q.Decide(results[i].Err)
		outcome, err := q.Outcome()
		results[i].Err, results[i].Accepted = err, outcome == quorum.Accepted
	}
	return results, nil
}
