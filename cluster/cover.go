package cluster

import (
	"slices"
	"sync/atomic"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/routing"
	"divan/shard/ring"
)

// covers chooses the copies that listings read: whole copies that tile the ring once.
type covers struct {
	*replicas
	routing routing.Table
	last    atomic.Pointer[cover]
}

// cover is one copy per range, as long as no node comes or goes.
type cover struct {
	epoch  uint64         // of presence
	picked []ring.Replica // nil: some range has no copy that can be reached
}

// choose picks the copies that a listing reads: one per range, those of this
// node gladly, those that cannot be reached never.
func (d *covers) choose(all []ring.Replica) []ring.Replica {
	spans := make([]quorum.Span, 0, len(all))
	live := make([]ring.Replica, 0, len(all))
	for _, t := range all {
		if d.copies(t.Node) == nil {
			continue
		}
		cost := 1
		if t.Node == d.node {
			cost = 0
		}
		live = append(live, t)
		spans = append(spans, quorum.Span{Begin: t.Begin, End: t.End, Cost: cost})
	}
	picked, ok := quorum.Cover(spans)
	if !ok {
		return nil
	}
	out := make([]ring.Replica, len(picked))
	for i, p := range picked {
		out[i] = live[p]
	}
	return out
}

// covered returns one live copy per range, in ring order, or the error that
// says that some range has none. Which copies those are is worked out again
// when a node has come or gone.
func (d *covers) covered() ([]ring.Replica, error) {
	epoch := d.here.Epoch()
	c := d.last.Load()
	if c == nil || c.epoch != epoch {
		c = &cover{epoch: epoch, picked: d.choose(d.routing.Full())}
		d.last.Store(c)
	}
	if c.picked == nil {
		return nil, fanout.NoCopy()
	}
	return c.picked, nil
}

// Sources returns where rows are read: for each range of the ring, or only for
// that of a partition, the copies in the order in which they are asked. That of
// this node comes first, or with deciding the one that decides edits: it has
// every edit that was acknowledged.
func (d *covers) Sources(partition string, deciding bool) ([][]ring.Replica, error) {
	picked, err := d.holding(partition)
	if err != nil {
		return nil, err
	}
	out := make([][]ring.Replica, len(picked))
	for i, t := range picked {
		s := d.routing.At(t.Begin)
		if deciding {
			out[i] = routing.Named(s.Copies, t.Name)
		} else {
			out[i] = routing.Named(s.Near, t.Name)
		}
	}
	return out, nil
}

// holding returns one live copy per range, or that of a partition only.
func (d *covers) holding(partition string) ([]ring.Replica, error) {
	picked, err := d.covered()
	if err != nil || partition == "" {
		return picked, err
	}
	begin := d.routing.Owner(partitionStart(partition)).Begin
	for i := range picked {
		if picked[i].Contains(begin) {
			return picked[i : i+1], nil
		}
	}
	return nil, fanout.NoCopy()
}

// allHere reports whether all of these copies are on this node.
func (d *covers) allHere(picked []ring.Replica) bool {
	return !slices.ContainsFunc(picked, func(t ring.Replica) bool { return t.Node != d.node })
}

// onEach calls f for every one of the chosen copies, at once unless all are on
// this node, where opening is a matter of microseconds.
func (d *covers) onEach(picked []ring.Replica, f func(i int) error) error {
	if !d.allHere(picked) {
		return fanout.Each(len(picked), f)
	}
	for i := range picked {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}
