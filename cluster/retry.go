package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"divan/cluster/routing"
	"divan/storage/fault"
)

// What is tried again, from the whole to the part. A request that has done nothing begins
// again with another database of that name, or other ranges of it (Attempts). The part of a
// request that belongs to one range goes on by a newer map (byNewestMap). Within one map it
// goes from copy to copy of the range as the answers say (fanout.HedgedRequest, whose
// Decider returns a quorum.Step).

// ErrSuccessor is the cause of an error that says that a database does not exist
// when another one has its name by now: a request that was not for the very
// one that is gone may begin again with the other. Compare with errors.Is.
var ErrSuccessor = errors.New("another database has the name by now")

// maxAttempts is how often a request begins at most.
const maxAttempts = 4

// Attempts counts how often a request has begun. The zero value is for its first
// time.
type Attempts struct{ begun int }

// Again reports whether a request that has ended with err and has done nothing
// begins again, with the database that has the name by then, or its newest map: after
// ErrSuccessor, and when its ranges were cut otherwise meanwhile, a few times.
func (a *Attempts) Again(err error) bool {
	if !errors.Is(err, ErrSuccessor) && !errors.Is(err, errNewRanges) {
		return false
	}
	a.begun++
	return a.begun < maxAttempts
}

// Do calls f with the database of that name, and again as Attempts says. The
// error is that of DB, or f's.
func (c *Coordinator) Do(ctx context.Context, name string, f func(d *DB) error) error {
	var attempts Attempts
	for {
		d, err := c.DB(ctx, name)
		if err == nil {
			err = f(d)
		}
		if !attempts.Again(err) {
			return err
		}
	}
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
