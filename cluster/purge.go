package cluster

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard"
	"divan/shard/ring"
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

// purges removes leaves of documents for good.
type purges struct {
	*replicaSet
	design func(ctx context.Context)
}

// Purge removes leaves of documents for good, in the order given, and answers
// item by item: revisions that are not leaves are left out of Purged, which is
// empty for a document that does not exist. w is the number of copies that
// must have done it, 0 for more than half. Each item enters the log of purges
// of every copy under one uuid, so that a copy that gets it twice, directly
// and by synchronisation, does it once.
func (d *purges) Purge(ctx context.Context, w int, items []shard.PurgeItem) ([]PurgeOutcome, error) {
	if len(items) == 0 {
		return nil, nil
	}
	if slices.ContainsFunc(items, func(i shard.PurgeItem) bool { return strings.HasPrefix(i.ID, doc.DesignPrefix) }) {
		defer d.design(ctx)
	}
	ctx, cancel := d.deadline(ctx)
	defer cancel()
	before := d.noCopies.Load()
	groups := d.routing.Group(len(items), func(i int) string { return items[i].ID })
	out := make([]PurgeOutcome, len(items))
	items = slices.Clone(items)
	for i := range items {
		if items[i].UUID == ([16]byte{}) {
			rand.Read(items[i].UUID[:]) // never fails, says its documentation
		}
	}
	err := fanout.Each(len(groups), func(g int) error {
		d.byNewestMap(ctx, groups[g], func(i int) string { return items[i].ID }, func(d *DB, g routing.Group) (open []int) {
			done := d.purge(ctx, g.Route, w, pick(items, g.Items), pick(out, g.Items))
			for i, o := range done {
				out[g.Items[i]] = o
			}
			if done[0].Err == nil && !done[0].Accepted { // all items are done together
				return nil
			}
			return g.Items
		})
		return nil
	})
	if gone := d.stillThere(ctx, before); gone != nil {
		return nil, gone
	}
	return out, err
}

// purging is the items of one range on their way to all its copies.
type purging struct {
	fanout.HedgedRequest[ring.Replica, []shard.PurgeResult]
	db    *replicaSet
	route *routing.Route
	items []shard.PurgeItem
	count quorum.Write
	out   []PurgeOutcome
	doubt error  // why a copy may have done it unseen
	said  []said // by copy
}

// said tells how a copy answered.
type said uint8

const (
	saidNothing said = iota
	saidDone
	saidFailed
)

// purge has every copy of a range do the same items. There is nothing to decide, so all copies are
// asked at once, and the answer is given when enough of them, and that of this node, have done it;
// a slower one does it all the same, and one that does not is noted for repair. The first
// copy that did not fail is waited for a little longer: views and searches read it. before holds
// the outcomes by an older map: a purge is done once, by its uuid.
func (d *purges) purge(ctx context.Context, s *routing.Route, w int, items []shard.PurgeItem, before []PurgeOutcome) []PurgeOutcome {
	p := &purging{db: d.replicaSet, route: s, items: items, count: quorum.NewWrite(len(s.Copies), len(s.Joining), w), out: make([]PurgeOutcome, len(items))}
	if s.PerNode != nil {
		p.count.OnNodes(s.PerNode)
	}
	for k := range items {
		p.out[k].ID = items[k].ID
		p.out[k].Purged = before[k].Purged
	}
	p.Database, p.Copies, p.Decider, p.Call, p.Detached = d.Asking(), s.All(), p, p.purgeAt, true
	p.said = make([]said, len(p.Copies))
	p.Start(ctx, len(p.Copies))
	var late error
	if !p.enough() {
		if late = p.Wait(ctx); late != nil {
			p.doubt = late
			p.count.Follow(0, false, late)
			p.count.Fail()
		}
	}
	outcome, err := p.count.Outcome()
	if err == nil && late == nil && !p.readable() {
		p.Limit = fanout.MostPatience
		_ = p.Wait(ctx) // enough copies have done it, whether this one answers or not
	}
	if fault.Is(err, fault.NoCopy) && p.doubt != nil {
		err = p.doubt // for it is not said that nothing was done
	}
	err = d.phrase(err)
	for k := range p.out {
		p.out[k].Accepted, p.out[k].Err = outcome == quorum.Accepted, err
	}
	return p.out
}

// readable reports whether the copies that views and searches read have done it: of each range the
// first full copy that did not fail.
func (p *purging) readable() bool {
	var ranges []string
	for i, t := range p.Copies {
		if t.State == ring.StateJoining || p.said[i] == saidFailed || slices.Contains(ranges, t.Name) {
			continue
		}
		if p.said[i] == saidNothing {
			return false
		}
		ranges = append(ranges, t.Name)
	}
	return true
}

func (p *purging) enough() bool {
	outcome, _ := p.count.Outcome()
	return outcome != quorum.Pending && !p.OwnPending()
}

func (p *purging) purgeAt(ctx context.Context, rep replica.Copy, t ring.Replica) ([]shard.PurgeResult, error) {
	answers, err := replica.Purge.On(ctx, rep, replica.PurgeRequest{Copy: t.Name, Items: p.items})
	if err != nil {
		p.db.missed(t)
		return nil, err
	}
	return answers, nil
}

// Request implements fanout.Decider.
func (p *purging) Request(_ int, t ring.Replica) (ring.Replica, bool) { return t, true }

// Take implements fanout.Decider.
func (p *purging) Take(a fanout.Answer[[]shard.PurgeResult], _ int) quorum.Step {
	t := p.Copies[a.At]
	if p.said[a.At] = saidDone; a.Err != nil || a.Unreached {
		p.said[a.At] = saidFailed
	}
	switch {
	case a.Unreached:
		p.db.missed(t)
	case quorum.Doubtful(a.Err):
		p.doubt = a.Err
	}
	p.count.Follow(p.route.NodeOf(a.At), t.State == ring.StateJoining, a.Err)
	for k := range a.Got {
		if len(a.Got[k].Purged) > len(p.out[k].Purged) {
			p.out[k].Purged = a.Got[k].Purged
		}
	}
	if p.enough() && (p.Limit == 0 || p.readable()) {
		return quorum.Enough
	}
	return quorum.Wait
}

// PurgedInfos returns the log of purges: for each purge that is still
// remembered the document and the revisions that were named. The log holds at
// most _purged_infos_limit entries per shard, so it is returned whole.
func (d *purges) PurgedInfos(ctx context.Context) ([]shard.PurgeInfo, error) {
	picked, err := d.covered()
	if err != nil {
		return nil, err
	}
	parts := make([][]shard.PurgeInfo, len(picked))
	err = fanout.Each(len(picked), func(i int) error {
		var err error
		parts[i], err = ask(ctx, d.replicaSet, d.routing.SameRange(picked[i]), func(ctx context.Context, rep replica.Copy, t ring.Replica) ([]shard.PurgeInfo, error) {
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
