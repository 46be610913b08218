// Package routing tells where the documents of a database live: the parts of the ring, and
// the copies of each, by one map.
package routing

import (
	"slices"
	"sort"

	"divan/cluster/meta"
	"divan/shard"
	"divan/shard/ring"
)

// Route is a part of the ring with the copies that documents of it are read from and
// written to. As long as no range overlaps another there is one for each range; while
// only some copies of a range are split, a route is half of it, held by copies of that
// half and of the whole range.
type Route struct {
	ring.Range
	Copies []ring.Replica // in the order of the map: the first live one decides edits
	Near   []ring.Replica // the same, that of this node first: in this order they are asked
	// Joining is those that are being filled: they get all that is written.
	Joining []ring.Replica
	PerNode []uint8 // how many of All() count for each of their nodes; nil: one for each
}

// All returns the copies that get what is written, the full ones first.
func (s *Route) All() []ring.Replica { return slices.Concat(s.Copies, s.Joining) }

// NodeOf returns the place of the node of a copy of All() in PerNode.
func (s *Route) NodeOf(at int) int {
	if s.PerNode == nil {
		return 0
	}
	return s.Nodes()[at]
}

// Nodes returns for each copy of All() the number of the node that it counts for, in the order in which
// nodes come. One that comes instead of a copy on another node counts for that.
func (s *Route) Nodes() []int {
	var names []string
	all := s.All()
	out := make([]int, len(all))
	for i, t := range all {
		node := t.Node
		if t.Instead != "" && slices.ContainsFunc(all, func(o ring.Replica) bool { return o.Node == t.Instead }) {
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

// count fills PerNode.
func (s *Route) count() {
	nodes := s.Nodes()
	perNode := make([]uint8, slices.Max(nodes)+1)
	for _, n := range nodes {
		perNode[n]++
	}
	if len(perNode) < len(nodes) {
		s.PerNode = perNode
	}
}

// Routes cuts the ring wherever a range begins or ends, for that node.
func Routes(all []ring.Replica, node string) []Route {
	var cuts []uint32
	for _, t := range all {
		cuts = append(cuts, t.Begin)
		if t.End != ring.Full().End {
			cuts = append(cuts, t.End+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	out := make([]Route, 0, len(cuts))
	for i, begin := range cuts {
		s := Route{Range: ring.Range{Begin: begin, End: ring.Full().End}}
		if i+1 < len(cuts) {
			s.End = cuts[i+1] - 1
		}
		for _, t := range all {
			switch {
			case !t.Contains(begin):
			case t.State == ring.StateJoining:
				s.Joining = append(s.Joining, t)
			default:
				s.Copies = append(s.Copies, t)
			}
		}
		s.count()
		s.Near = nearest(s.Copies, node)
		out = append(out, s)
	}
	return out
}

// nearest puts the copy of a node first.
func nearest(copies []ring.Replica, node string) []ring.Replica {
	for i := range copies {
		if copies[i].Node != node {
			continue
		}
		if i == 0 {
			break
		}
		out := make([]ring.Replica, 0, len(copies))
		out = append(out, copies[i])
		out = append(out, copies[:i]...)
		return append(out, copies[i+1:]...)
	}
	return copies
}

// Table is the way of documents to their copies, by one map.
type Table struct {
	Routes      []Route
	Partitioned bool // places on the ring go by the partition
}

// NewTable works out which copies hold what, by the map of a database; node is the node that asks.
func NewTable(m *meta.Database, node string) Table {
	var all []ring.Replica
	for _, s := range m.Shards {
		name := ring.CopyName(s.Range, m.Name, m.Suffix)
		for _, one := range s.Copies {
			if !one.State.Used() {
				continue
			}
			all = append(all, ring.Replica{Range: s.Range, Copy: one, Name: name, Generation: m.Generation})
		}
	}
	return Table{Routes: Routes(all, node), Partitioned: m.Partitioned}
}

// Ranges returns for each part of the ring the copies that hold its documents,
// that of this node first; the others in the order in which they decide edits.
func (t *Table) Ranges() [][]ring.Replica {
	out := make([][]ring.Replica, len(t.Routes))
	for i := range t.Routes {
		out[i] = t.Routes[i].Near
	}
	return out
}

// Owner returns the route that a document belongs to.
func (t *Table) Owner(id string) *Route {
	return &t.Routes[t.ownerIndex(id)]
}

func (t *Table) ownerIndex(id string) int {
	if len(t.Routes) == 1 {
		return 0
	}
	return t.indexAt(ring.Hash(id, t.Partitioned))
}

// indexAt returns the route that holds a point of the ring. The first one
// begins at 0, so that the search never returns 0.
func (t *Table) indexAt(hash uint32) int {
	return sort.Search(len(t.Routes), func(i int) bool { return t.Routes[i].Begin > hash }) - 1
}

// At returns the route that holds a point of the ring.
func (t *Table) At(hash uint32) *Route { return &t.Routes[t.indexAt(hash)] }

// Group is the items of a request that belong to one route.
type Group struct {
	Route *Route
	Items []int // their places in the request, ascending
}

// Group sorts n items by the route their ids belong to; the groups are in
// ring order.
func (t *Table) Group(n int, id func(i int) string) []Group {
	if len(t.Routes) == 1 {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return []Group{{Route: &t.Routes[0], Items: items}}
	}
	owners := make([]int32, n)
	counts := make([]int, len(t.Routes))
	for i := range n {
		o := t.ownerIndex(id(i))
		owners[i] = int32(o)
		counts[o]++
	}
	space := make([]int, n)
	byOwner := make([]Group, len(t.Routes))
	for o, count := range counts {
		byOwner[o] = Group{Route: &t.Routes[o], Items: space[:0:count]}
		space = space[count:]
	}
	for i, o := range owners {
		byOwner[o].Items = append(byOwner[o].Items, i)
	}
	groups := byOwner[:0]
	for _, g := range byOwner {
		if len(g.Items) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// InOrder sorts groups by their first items.
func InOrder(groups []Group) {
	slices.SortFunc(groups, func(a, b Group) int { return a.Items[0] - b.Items[0] })
}

// SoleOwner returns the route that all edits belong to, nil when there are
// several.
func (t *Table) SoleOwner(edits []shard.Edit) *Route {
	first := t.ownerIndex(edits[0].ID)
	for i := range edits[1:] {
		if t.ownerIndex(edits[i+1].ID) != first {
			return nil
		}
	}
	return &t.Routes[first]
}

// SameRange returns the copies that hold the same range as one does, that of this node
// first: whichever of them is read, the listing is the same.
func (t *Table) SameRange(as ring.Replica) []ring.Replica {
	return Named(t.At(as.Begin).Near, as.Name)
}

// ShardOf returns the shard that a document belongs to, whether or not there
// is such a document. Nodes lists every node with a copy of that part of the
// ring.
func (t *Table) ShardOf(id string) ring.Shard {
	s := t.Owner(id)
	out := ring.Shard{Range: s.Copies[0].Range}
	for _, c := range s.All() {
		if !out.On(c.Node) {
			out.Copies = append(out.Copies, ring.Copy{ID: c.ID, Node: c.Node})
		}
	}
	return out
}

// All returns every copy once.
func (t *Table) All() []ring.Replica { return t.every((*Route).All) }

// Full returns every full copy once.
func (t *Table) Full() []ring.Replica {
	return t.every(func(s *Route) []ring.Replica { return s.Copies })
}

func (t *Table) every(of func(s *Route) []ring.Replica) []ring.Replica {
	var out []ring.Replica
	for i := range t.Routes {
		for _, c := range of(&t.Routes[i]) {
			if c.Begin == t.Routes[i].Begin { // a copy of several routes is listed by its first
				out = append(out, c)
			}
		}
	}
	return out
}

// Named returns those of some copies that have a name.
func Named(copies []ring.Replica, name string) []ring.Replica {
	other := func(o ring.Replica) bool { return o.Name != name }
	if !slices.ContainsFunc(copies, other) {
		return copies
	}
	return slices.DeleteFunc(slices.Clone(copies), other)
}
