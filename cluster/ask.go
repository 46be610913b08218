package cluster

import (
	"context"

	"divan/cluster/quorum"
)

// ask puts a question to one copy of a stretch that any of them can answer: to
// that of this node if it has one, else in the order of the map, and to the
// next one as long as a copy gives no usable answer. The error is explained.
func (d *DB) ask(ctx context.Context, s *stretch, question func(context.Context, replica, string) error) error {
	if len(s.copies) == 1 && s.copies[0].node == d.c.node {
		return d.explain(question(ctx, d.c.local, s.copies[0].name))
	}
	ctx, cancel := d.c.deadline(ctx)
	defer cancel()
	err := errNoCopy()
	for _, own := range []bool{true, false} {
		for _, t := range s.copies {
			rep := d.c.replica(t.node)
			if (t.node == d.c.node) != own || rep == nil {
				continue
			}
			err = question(ctx, rep, t.name)
			if err == nil || (quorum.Usable(err) && !isNoCopy(err)) || ctx.Err() != nil {
				return d.explain(err)
			}
		}
	}
	return d.explain(err)
}

// group is the items of a request that belong to one stretch.
type group struct {
	stretch *stretch
	items   []int // their places in the request, ascending
}

// group sorts n items by the stretch their ids belong to; the groups are in
// ring order.
func (d *DB) group(n int, id func(i int) string) []group {
	if len(d.stretches) == 1 {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return []group{{stretch: &d.stretches[0], items: items}}
	}
	owners := make([]int32, n)
	counts := make([]int, len(d.stretches))
	for i := range n {
		o := d.ownerIndex(id(i))
		owners[i] = int32(o)
		counts[o]++
	}
	room := make([]int, n)
	byOwner := make([]group, len(d.stretches))
	for o, count := range counts {
		byOwner[o] = group{stretch: &d.stretches[o], items: room[:0:count]}
		room = room[count:]
	}
	for i, o := range owners {
		byOwner[o].items = append(byOwner[o].items, i)
	}
	groups := byOwner[:0]
	for _, g := range byOwner {
		if len(g.items) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}
