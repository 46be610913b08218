package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"divan/cluster/fanout"
	"divan/cluster/routing"
	"divan/storage/fault"
)

// renewed returns the database by a newer map than that of this handle: the one that this
// node has, or the one that a copy has said to know, of which it waits a little to hear.
// false when there is none. A request whose answers are counted begins its part again with
// that: answers by different maps make no quorum. One of which any copy's answer will do asks
// the copies of the newer map when those of its own do not answer.
func (d *replicaSet) renewed(ctx context.Context) (*DB, bool) {
	if m, ok := d.metaGroup.Database(d.meta.Name); ok && m.ID == d.meta.ID && m.Generation > d.meta.Generation {
		return d.handles.get(m), true
	}
	newer := d.newer.Load()
	if newer <= d.meta.Generation {
		return nil, false
	}
	limit := fanout.NudgeLimit
	if d.unheard.Load() == newer { // this node is cut off, and not each request is to find that out
		limit = fanout.ReadPatience
	}
	soon, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := d.metaGroup.WaitApplied(soon, newer); err != nil {
		if ctx.Err() == nil { // else the request has ended, which says nothing of this node
			d.unheard.Store(newer)
		}
		return nil, false
	}
	m, ok := d.metaGroup.Database(d.meta.Name)
	if !ok || m.ID != d.meta.ID || m.Generation <= d.meta.Generation {
		return nil, false
	}
	return d.handles.get(m), true
}

// byNewestMap does f with items of a request that belong to one route, and again with the newer
// map, as long as there is one, for those that f returns as open. They may belong to several
// routes by that. Reads are done unless a copy has refused meanwhile because it knows a newer
// map; writes when enough copies have taken everything.
func (d *replicaSet) byNewestMap(ctx context.Context, g routing.Group, id func(i int) string, f func(d *DB, g routing.Group) (open []int)) {
	newest := d.db
	for groups := []routing.Group{g}; ; {
		var open []int
		for _, g := range groups {
			open = append(open, f(newest, g)...)
		}
		if len(open) == 0 {
			return
		}
		next, ok := newest.renewed(ctx)
		if !ok {
			return
		}
		newest, groups = next, next.routing.Group(len(open), func(i int) string { return id(open[i]) })
		for _, g := range groups {
			for k, i := range g.Items {
				g.Items[k] = open[i]
			}
		}
	}
}

// byNewestMapOf is byNewestMap for one document.
func (d *replicaSet) byNewestMapOf(ctx context.Context, s *routing.Route, id string, f func(d *DB, s *routing.Route) (done bool)) {
	all := []int{0}
	d.byNewestMap(ctx, routing.Group{Route: s, Items: all}, func(int) string { return id }, func(d *DB, g routing.Group) (open []int) {
		if f(d, g.Route) {
			return nil
		}
		return all
	})
}

// errNewRanges is why a request that has done nothing may begin again: the ranges of the
// database are others by now.
var errNewRanges = errors.New("the database has other ranges by now")

// unavailable says that no copy of a range can answer, and whether that is because there is no such
// range any more.
func (d *replicaSet) unavailable(err error) error {
	if m, ok := d.metaGroup.Database(d.meta.Name); ok && m.ID == d.meta.ID && m.Generation > d.meta.Generation &&
		!slices.EqualFunc(d.handles.get(m).routing.Routes, d.routing.Routes, func(a, b routing.Route) bool { return a.Range == b.Range }) {
		err = fmt.Errorf("%w: %w", errNewRanges, err)
	} else if fault.Is(err, fault.Unavailable) { // it was phrased
		return err
	}
	return fault.Wrap(fault.Unavailable, "No copy of the shard can answer now.", err)
}

// Renewed implements fanout.Database.
func (a *Asking) Renewed(ctx context.Context, t fanout.Target) (fanout.Database, []fanout.Target, bool) {
	d, ok := (*replicaSet)(a).renewed(ctx)
	if !ok {
		return nil, nil, false
	}
	copies := d.routing.SameRange(t) // none when the range was cut otherwise: then those of before may do
	return d.Asking(), copies, len(copies) > 0 && !slices.Contains(copies, t)
}
