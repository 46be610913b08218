package cluster

import (
	"slices"
	"sort"

	"divan/cluster/fanout"
	"divan/shard/ring"
)

// segment is a part of the ring whose documents live on the same copies. As
// long as no range overlaps another, segments and shards are the same thing;
// while only some copies of a range are split, a segment is a half and is held
// by copies of the half and of the whole.
type segment struct {
	ring.Range
	copies []fanout.Target // in the order of the map: the first live one decides edits
	near   []fanout.Target // the same, that of this node first: in this order they are asked
	// joining is those that are being filled: they get all that is written.
	joining []fanout.Target
}

// all returns the copies that get what is written, the full ones first.
func (s *segment) all() []fanout.Target { return slices.Concat(s.copies, s.joining) }

// segments cuts the ring wherever a range begins, for that node.
func segments(all []fanout.Target, node string) []segment {
	var cuts []uint32
	for _, t := range all {
		cuts = append(cuts, t.Begin)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	out := make([]segment, 0, len(cuts))
	for i, begin := range cuts {
		s := segment{Range: ring.Range{Begin: begin, End: ring.Full().End}}
		if i+1 < len(cuts) {
			s.End = cuts[i+1] - 1
		}
		for _, t := range all {
			switch {
			case !t.Contains(begin):
			case t.Joining:
				s.joining = append(s.joining, t)
			default:
				s.copies = append(s.copies, t)
			}
		}
		s.near = nearest(s.copies, node)
		out = append(out, s)
	}
	return out
}

// nearest puts the copy of a node first.
func nearest(copies []fanout.Target, node string) []fanout.Target {
	for i := range copies {
		if copies[i].Node != node {
			continue
		}
		if i == 0 {
			break
		}
		out := make([]fanout.Target, 0, len(copies))
		out = append(out, copies[i])
		out = append(out, copies[:i]...)
		return append(out, copies[i+1:]...)
	}
	return copies
}

// Ranges returns for each part of the ring the copies that hold its documents,
// that of this node first; the others in the order in which they decide edits.
func (d *DB) Ranges() [][]fanout.Target {
	out := make([][]fanout.Target, len(d.segments))
	for i := range d.segments {
		out[i] = d.segments[i].near
	}
	return out
}

// owner returns the segment that a document belongs to.
func (d *DB) owner(id string) *segment {
	return &d.segments[d.ownerIndex(id)]
}

func (d *DB) ownerIndex(id string) int {
	if len(d.segments) == 1 {
		return 0
	}
	return d.indexAt(ring.Hash(id, d.meta.Partitioned))
}

// indexAt returns the segment that holds a point of the ring. The first one
// begins at 0, so that the search never returns 0.
func (d *DB) indexAt(hash uint32) int {
	return sort.Search(len(d.segments), func(i int) bool { return d.segments[i].Begin > hash }) - 1
}

func (d *DB) segmentAt(hash uint32) *segment { return &d.segments[d.indexAt(hash)] }

// group is the items of a request that belong to one segment.
type group struct {
	segment *segment
	items   []int // their places in the request, ascending
}

// group sorts n items by the segment their ids belong to; the groups are in
// ring order.
func (d *DB) group(n int, id func(i int) string) []group {
	if len(d.segments) == 1 {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return []group{{segment: &d.segments[0], items: items}}
	}
	owners := make([]int32, n)
	counts := make([]int, len(d.segments))
	for i := range n {
		o := d.ownerIndex(id(i))
		owners[i] = int32(o)
		counts[o]++
	}
	room := make([]int, n)
	byOwner := make([]group, len(d.segments))
	for o, count := range counts {
		byOwner[o] = group{segment: &d.segments[o], items: room[:0:count]}
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
