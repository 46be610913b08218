package cluster

import (
	"slices"
	"sort"

	"divan/cluster/fanout"
	"divan/shard"
	"divan/shard/ring"
)

// route is a part of the ring with the copies that documents of it are read from and
// written to. As long as no range overlaps another there is one for each range; while
// only some copies of a range are split, a route is half of it, held by copies of that
// half and of the whole range.
type route struct {
	ring.Range
	copies []fanout.Target // in the order of the map: the first live one decides edits
	near   []fanout.Target // the same, that of this node first: in this order they are asked
	// joining is those that are being filled: they get all that is written.
	joining []fanout.Target
	perNode []uint8 // how many of all() count for each of their nodes; nil: one for each
}

// all returns the copies that get what is written, the full ones first.
func (s *route) all() []fanout.Target { return slices.Concat(s.copies, s.joining) }

// node returns the place of the node of a copy of all() in perNode.
func (s *route) node(at int) int {
	if s.perNode == nil {
		return 0
	}
	return s.nodes()[at]
}

// nodes returns for each copy of all() the number of the node that it counts for, in the order in which
// nodes come. One that comes instead of a copy on another node counts for that.
func (s *route) nodes() []int {
	var names []string
	all := s.all()
	out := make([]int, len(all))
	for i, t := range all {
		node := t.Node
		if t.Instead != "" && slices.ContainsFunc(all, func(o fanout.Target) bool { return o.Node == t.Instead }) {
			node = t.Instead
		}
		out[i] = slices.Index(names, node)
		if out[i] < 0 {
			out[i] = len(names)
			names = append(names, node)
		}
	}
	return out
}

// count fills perNode.
func (s *route) count() {
	nodes := s.nodes()
	perNode := make([]uint8, slices.Max(nodes)+1)
	for _, n := range nodes {
		perNode[n]++
	}
	if len(perNode) < len(nodes) {
		s.perNode = perNode
	}
}

// routes cuts the ring wherever a range begins or ends, for that node.
func routes(all []fanout.Target, node string) []route {
	var cuts []uint32
	for _, t := range all {
		cuts = append(cuts, t.Begin)
		if t.End != ring.Full().End {
			cuts = append(cuts, t.End+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	out := make([]route, 0, len(cuts))
	for i, begin := range cuts {
		s := route{Range: ring.Range{Begin: begin, End: ring.Full().End}}
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
		s.count()
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

// routing is the way of documents to their copies, by one map.
type routing struct {
	routes      []route
	partitioned bool // places on the ring go by the partition
}

// Ranges returns for each part of the ring the copies that hold its documents,
// that of this node first; the others in the order in which they decide edits.
func (d *routing) Ranges() [][]fanout.Target {
	out := make([][]fanout.Target, len(d.routes))
	for i := range d.routes {
		out[i] = d.routes[i].near
	}
	return out
}

// owner returns the route that a document belongs to.
func (d *routing) owner(id string) *route {
	return &d.routes[d.ownerIndex(id)]
}

func (d *routing) ownerIndex(id string) int {
	if len(d.routes) == 1 {
		return 0
	}
	return d.indexAt(ring.Hash(id, d.partitioned))
}

// indexAt returns the route that holds a point of the ring. The first one
// begins at 0, so that the search never returns 0.
func (d *routing) indexAt(hash uint32) int {
	return sort.Search(len(d.routes), func(i int) bool { return d.routes[i].Begin > hash }) - 1
}

func (d *routing) routeAt(hash uint32) *route { return &d.routes[d.indexAt(hash)] }

// group is the items of a request that belong to one route.
type group struct {
	route *route
	items []int // their places in the request, ascending
}

// pick returns the values at some places.
func pick[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for k, at := range places {
		out[k] = all[at]
	}
	return out
}

// group sorts n items by the route their ids belong to; the groups are in
// ring order.
func (d *routing) group(n int, id func(i int) string) []group {
	if len(d.routes) == 1 {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return []group{{route: &d.routes[0], items: items}}
	}
	owners := make([]int32, n)
	counts := make([]int, len(d.routes))
	for i := range n {
		o := d.ownerIndex(id(i))
		owners[i] = int32(o)
		counts[o]++
	}
	room := make([]int, n)
	byOwner := make([]group, len(d.routes))
	for o, count := range counts {
		byOwner[o] = group{route: &d.routes[o], items: room[:0:count]}
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

// soleOwner returns the route that all edits belong to, nil when there are
// several.
func (d *routing) soleOwner(edits []shard.Edit) *route {
	first := d.ownerIndex(edits[0].ID)
	for i := range edits[1:] {
		if d.ownerIndex(edits[i+1].ID) != first {
			return nil
		}
	}
	return &d.routes[first]
}

// sameRange returns the copies that hold the same range as t, that of this node
// first: whichever of them is read, the listing is the same.
func (d *routing) sameRange(t fanout.Target) []fanout.Target {
	return named(d.routeAt(t.Begin).near, t.Name)
}

// ShardOf returns the shard that a document belongs to, whether or not there
// is such a document. Nodes lists every node with a copy of that part of the
// ring.
func (d *routing) ShardOf(id string) ring.Shard {
	s := d.owner(id)
	out := ring.Shard{Range: s.copies[0].Range}
	for _, t := range s.all() {
		if !out.On(t.Node) {
			out.Copies = append(out.Copies, ring.Copy{ID: t.ID, Node: t.Node})
		}
	}
	return out
}

// all returns every copy once.
func (d *routing) all() []fanout.Target { return d.every((*route).all) }

// full returns every full copy once.
func (d *routing) full() []fanout.Target {
	return d.every(func(s *route) []fanout.Target { return s.copies })
}

func (d *routing) every(of func(s *route) []fanout.Target) []fanout.Target {
	var out []fanout.Target
	for i := range d.routes {
		for _, t := range of(&d.routes[i]) {
			if t.Begin == d.routes[i].Begin { // a copy of several routes is listed by its first
				out = append(out, t)
			}
		}
	}
	return out
}
