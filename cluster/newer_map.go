package cluster

import (
	"context"
	"slices"

	"divan/cluster/fanout"
	"divan/shard/ring"
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

// Renewed implements fanout.Database.
func (a *Asking) Renewed(ctx context.Context, t ring.Replica) (fanout.Database, []ring.Replica, bool) {
	d, ok := (*replicaSet)(a).renewed(ctx)
	if !ok {
		return nil, nil, false
	}
	copies := d.routing.SameRange(t) // none when the range was cut otherwise: then those of before may do
	return d.Asking(), copies, len(copies) > 0 && !slices.Contains(copies, t)
}
