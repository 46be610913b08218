package cluster

import (
	"context"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/figures"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// docWrites writes documents.
type docWrites struct {
	*replicaSet
	figures *figures.Counters
	design  func(ctx context.Context) // is called when a design document may have changed
}

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
func (d *docWrites) Update(ctx context.Context, o UpdateOptions, edits []shard.Edit) ([]shard.EditResult, error) {
	if len(edits) == 0 {
		return nil, nil
	}
	if changesDesign(edits) {
		defer d.design(ctx)
	}
	before := d.noCopies.Load()
	var results []shard.EditResult
	var err error
	if s := d.routing.SoleOwner(edits); s != nil {
		results, err = d.write(ctx, s, o, edits)
		err = d.phrase(err)
	} else {
		results, err = d.updateMany(ctx, o, edits)
	}
	d.figures.Updated(len(edits), results, err, Refusal)
	if gone := d.stillThere(ctx, before); gone != nil {
		return nil, gone
	}
	return results, err
}

// Refusal reports whether the error of an edit says that it was refused and has
// left no trace. After any other one it may have been written, be written still, or
// be taken another time.
func Refusal(err error) bool {
	return err != nil && fault.ClassOf(err) == fault.Answer && !fault.Is(err, fault.NoDatabase)
}

func changesDesign(edits []shard.Edit) bool {
	for i := range edits {
		if strings.HasPrefix(edits[i].ID, doc.DesignPrefix) {
			return true
		}
	}
	return false
}

// updateMany sends each shard its edits in one message, all shards at once.
func (d *docWrites) updateMany(ctx context.Context, o UpdateOptions, edits []shard.Edit) ([]shard.EditResult, error) {
	ctx, cancel := d.deadline(ctx)
	defer cancel()
	groups := d.routing.Group(len(edits), func(i int) string { return edits[i].ID })
	results := make([]shard.EditResult, len(edits))
	errs := make([]error, len(groups))
	_ = fanout.Each(len(groups), func(g int) error { // the errors are in errs
		var answers []shard.EditResult
		answers, errs[g] = d.write(ctx, groups[g].Route, o, pick(edits, groups[g].Items))
		failure := d.phrase(errs[g])
		for i, at := range groups[g].Items {
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

// written is the outcome of the edits of one range.
type written struct {
	results []shard.EditResult // nil: none of the edits got an answer from any copy
	err     error              // why not
	// open is the edits that fewer copies have than should, and that may be brought to
	// others: no copy can have done them unseen.
	open []int
}

// write brings the edits of one range to its copies. The error is that of every edit.
func (d *docWrites) write(ctx context.Context, s *routing.Route, o UpdateOptions, edits []shard.Edit) ([]shard.EditResult, error) {
	req := shard.DecideRequest{
		Edits: edits, NewEdits: o.NewEdits, Limits: d.limits(), User: o.User,
		DB: d.meta.Name, Security: d.meta.Security, Delayed: o.Delayed,
	}
	var w written
	all := make([]int, len(edits))
	for i := range all {
		all[i] = i
	}
	first := true
	d.byNewestMap(ctx, routing.Group{Route: s, Items: all}, func(i int) string { return edits[i].ID }, func(d *DB, g routing.Group) (open []int) {
		s := g.Route
		switch {
		case !first:
			w.open = g.Items
			w = d.writeRest(ctx, s, o.W, req, w)
		case len(s.Copies) > 1 || len(s.Joining) > 0:
			w = d.writeCopies(ctx, s, o.W, req, nil)
		default:
			w = d.writeCopy(ctx, s.Copies[0], o.W, req)
		}
		if first = false; o.Delayed { // then no client waits, and repair brings what a copy has refused
			return nil
		}
		return w.open
	})
	return w.results, w.err
}

// writeRest brings the edits that are open to the copies of a newer map. What copies of
// the older one have decided stands. When no copy of the newer one answers, what was
// known before is the answer.
func (d *docWrites) writeRest(ctx context.Context, s *routing.Route, w int, req shard.DecideRequest, before written) written {
	open := before.open
	rest, decided := req, make([]shard.EditResult, len(open))
	rest.Edits = pick(req.Edits, open)
	for k, i := range open {
		if before.results != nil && before.results[i].Accepted {
			decided[k] = before.results[i]
		}
	}
	got := d.writeCopies(ctx, s, w, rest, decided)
	for k := range got.open {
		got.open[k] = open[got.open[k]]
	}
	if before.results == nil && len(open) == len(req.Edits) {
		return got
	}
	results := slices.Clone(before.results) // slower copies still read those
	if results == nil {
		results = make([]shard.EditResult, len(req.Edits))
		for i := range results {
			results[i].Err = d.phrase(before.err)
		}
	}
	for k, i := range open {
		switch known := &results[i]; {
		case known.Accepted && (got.err != nil || got.results[k].Err != nil): // it is on a copy of the older map
		case got.err == nil:
			*known = got.results[k]
		default:
			known.Err = d.phrase(got.err)
		}
	}
	return written{results: results, open: got.open}
}

// writeCopy is write for the only copy there is.
func (d *docWrites) writeCopy(ctx context.Context, t ring.Replica, w int, req shard.DecideRequest) (out written) {
	if t.Node != d.node {
		var cancel context.CancelFunc
		ctx, cancel = d.deadline(ctx)
		defer cancel()
	}
	req.Copy, req.NoPath, req.Insist = t.Name, w < 2, true // no copy follows, and no other one is asked
	if rep := d.replica(t); rep.Away() {
		out.err = fanout.NoCopy()
	} else {
		out.results, out.err = replica.Decide.On(ctx, rep, req)
		d.noteRefusal(out.err)
	}
	for i := range req.Edits {
		q := quorum.NewWrite(1, 0, w)
		if out.err == nil {
			q.Decide(0, out.results[i].Err)
			outcome, err := q.Outcome()
			out.results[i].Err, out.results[i].Accepted = err, outcome == quorum.Accepted
		} else {
			q.Decide(0, out.err)
		}
		if q.Open() {
			out.open = append(out.open, i)
		}
	}
	return out
}
