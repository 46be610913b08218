package cluster

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// PurgeOutcome answers one item of a purge.
type PurgeOutcome struct {
	ID       string
	Purged   []doc.Rev // those of the named revisions that were leaves and are gone
	Accepted bool      // at least one copy has done it, but fewer than w
	Err      error     // no copy has done it
}

// Purge removes leaves of documents for good, in the order given, and answers
// item by item: revisions that are not leaves are left out of Purged, which is
// empty for a document that does not exist. w is the number of copies that
// must have done it, 0 for more than half. Each item enters the log of purges
// of every copy under one uuid, so that a copy that gets it twice, directly
// and by synchronisation, does it once.
func (d *DB) Purge(ctx context.Context, w int, items []shard.PurgeItem) ([]PurgeOutcome, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if slices.ContainsFunc(items, func(i shard.PurgeItem) bool { return strings.HasPrefix(i.ID, doc.DesignPrefix) }) {
		defer d.c.design(ctx, d)
	}
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	before := d.noCopies.Load()
	groups := d.group(len(items), func(i int) string { return items[i].ID })
	out := make([]PurgeOutcome, len(items))
	err := fanout.Each(len(groups), func(g int) error {
		mine := make([]shard.PurgeItem, len(groups[g].items))
		for i, at := range groups[g].items {
			mine[i] = items[at]
			if mine[i].UUID == ([16]byte{}) {
				rand.Read(mine[i].UUID[:]) // never fails, says its documentation
			}
		}
		var done []PurgeOutcome
		d.byNewestMap(ctx, groups[g].route, func(d *DB, s *route) bool {
			done = d.purge(ctx, s, w, mine, done)
			return done[0].Err == nil && !done[0].Accepted // all items are done together
		})
		for i, o := range done {
			out[groups[g].items[i]] = o
		}
		return nil
	})
	if gone := d.stillThere(ctx, before); gone != nil {
		return nil, gone
	}
	return out, err
}

// purged is what one copy said to the items of its route.
type purged struct {
	from    fanout.Target
	own     bool // the copy of this node
	answers []shard.PurgeResult
	err     error
}

// purge has every copy of a range do the same items. There is nothing to
// decide, so all copies are asked at once, and the answer is given when enough
// of them, and that of this node, have done it; a slower one does it all the
// same, and one that does not is noted for repair. before is what was purged by an
// older map, nil for nothing: a purge is done once, by its uuid.
func (d *DB) purge(ctx context.Context, s *route, w int, items []shard.PurgeItem, before []PurgeOutcome) []PurgeOutcome {
	q := quorum.NewWrite(len(s.copies), len(s.joining), w)
	all := s.all()
	inbox := make(chan purged, len(all)) // room for all, so that no straggler waits for a reader
	asked, own := 0, false
	for _, t := range all {
		here := t.Node == d.c.node
		rep := d.c.replica(t)
		run := func(ctx context.Context) {
			answers, err := replica.Purge.On(ctx, rep, replica.PurgeRequest{Copy: t.Name, Items: items})
			if err != nil {
				d.c.missed(t)
			}
			inbox <- purged{t, here, answers, err}
		}
		switch {
		case rep.Away():
			d.c.missed(t)
			lose(&q, t, fanout.NodeDown(t.Node))
		case !d.c.detach(ctx, run):
			lose(&q, t, fanout.Closed())
		default:
			asked++
			own = own || here
		}
	}
	out := make([]PurgeOutcome, len(items))
	for k := range items {
		out[k].ID = items[k].ID
		if before != nil {
			out[k].Purged = before[k].Purged
		}
	}
	var doubt error // why a copy may have done it unseen
	outcome, err := q.Outcome()
	for ; asked > 0 && (outcome == quorum.Pending || own); asked-- {
		select {
		case p := <-inbox:
			d.takePurged(&q, out, p)
			if p.err != nil && quorum.Doubtful(p.err) {
				doubt = p.err
			}
			own = own && !p.own
		case <-ctx.Done():
			doubt = ctx.Err()
			q.Lose(doubt)
			q.Fail()
			own = false
		}
		outcome, err = q.Outcome()
	}
	if fault.Is(err, fault.NoCopy) && doubt != nil {
		err = doubt // for it is not said that nothing was done
	}
	err = d.phrase(err)
	for k := range out {
		out[k].Accepted, out[k].Err = outcome == quorum.Accepted, err
	}
	return out
}

// lose counts a copy that has not done it.
func lose(q *quorum.Write, t fanout.Target, err error) {
	if t.Joining {
		q.LoseJoining()
	} else {
		q.Lose(err)
	}
}

func (d *DB) takePurged(q *quorum.Write, out []PurgeOutcome, p purged) {
	if p.err != nil {
		d.noteRefusal(p.err)
		lose(q, p.from, p.err)
		return
	}
	if p.from.Joining {
		q.StoreJoining()
	} else {
		q.Store()
	}
	for k := range out {
		if len(p.answers[k].Purged) > len(out[k].Purged) {
			out[k].Purged = p.answers[k].Purged
		}
	}
}

// PurgedInfos returns the log of purges: for each purge that is still
// remembered the document and the revisions that were named. The log holds at
// most _purged_infos_limit entries per shard, so it is returned whole.
func (d *DB) PurgedInfos(ctx context.Context) ([]shard.PurgeInfo, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	parts := make([][]shard.PurgeInfo, len(picked))
	err = fanout.Each(len(picked), func(i int) error {
		var err error
		parts[i], err = ask(ctx, d, d.sameRange(picked[i]), func(ctx context.Context, rep replica.Copy, t fanout.Target) ([]shard.PurgeInfo, error) {
			return replica.Purges.On(ctx, rep, replica.PurgesRequest{Copy: t.Name, Since: 0})
		})
		return err
	})
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	return distinct(slices.Concat(parts...)), nil
}

// distinct sorts the log by document and lists a purge that was asked for
// again once only, as CouchDB does.
func distinct(infos []shard.PurgeInfo) []shard.PurgeInfo {
	slices.SortStableFunc(infos, comparePurges)
	return slices.CompactFunc(infos, func(a, b shard.PurgeInfo) bool { return comparePurges(a, b) == 0 })
}

func comparePurges(a, b shard.PurgeInfo) int {
	if c := strings.Compare(a.ID, b.ID); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Revs, b.Revs, doc.Rev.Compare)
}
