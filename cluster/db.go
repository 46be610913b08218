package cluster

import (
	"slices"
	"sort"
	"sync/atomic"

	"divan/cluster/meta"
	"divan/cluster/quorum"
	"divan/shard"
	"divan/shard/ring"
)

// target is one copy of one range.
type target struct {
	ring.Range
	name string // of the copy, the same on every node that holds one
	node string
}

// stretch is a part of the ring whose documents live on the same copies. As
// long as no range overlaps another, stretches and shards are the same thing;
// while only some copies of a range are split, a stretch is a half and is held
// by copies of the half and of the whole.
type stretch struct {
	ring.Range
	copies []target // in the order of the map: the first live one decides edits
	near   []target // the same, that of this node first: in this order they are asked
}

// DB is a handle on one database as the metadata described it when the handle
// was made. It is safe for concurrent use and holds nothing that must be
// closed; a request takes one and keeps it.
type DB struct {
	c         *Coordinator
	meta      *meta.Database
	stretches []stretch
	cover     atomic.Pointer[cover]
	lacks     atomic.Uint64 // how often a node has said that it does not hold its copy
}

// cover is one copy per range, as long as no node comes or goes.
type cover struct {
	epoch  uint64   // of presence
	picked []target // nil: some range has no copy that can be reached
}

// newDB works out which copies hold what.
func newDB(c *Coordinator, m *meta.Database) *DB {
	d := &DB{c: c, meta: m}
	var all []target
	for _, s := range m.Shards {
		name := ring.CopyName(s.Range, m.Name, m.Suffix)
		for _, node := range s.Nodes {
			all = append(all, target{Range: s.Range, name: name, node: node})
		}
	}
	d.stretches = stretches(all, c.node)
	return d
}

// stretches cuts the ring wherever a range begins, for that node.
func stretches(all []target, node string) []stretch {
	var cuts []uint32
	for _, t := range all {
		cuts = append(cuts, t.Begin)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	out := make([]stretch, 0, len(cuts))
	for i, begin := range cuts {
		s := stretch{Range: ring.Range{Begin: begin, End: ring.Full().End}}
		if i+1 < len(cuts) {
			s.End = cuts[i+1] - 1
		}
		for _, t := range all {
			if t.Contains(begin) {
				s.copies = append(s.copies, t)
			}
		}
		s.near = nearest(s.copies, node)
		out = append(out, s)
	}
	return out
}

// nearest puts the copy of a node first.
func nearest(copies []target, node string) []target {
	for i := range copies {
		if copies[i].node != node {
			continue
		}
		if i == 0 {
			break
		}
		out := make([]target, 0, len(copies))
		out = append(out, copies[i])
		out = append(out, copies[:i]...)
		return append(out, copies[i+1:]...)
	}
	return copies
}

// choose picks the copies that a listing reads: one per range, those of this
// node gladly, those that cannot be reached never.
func (d *DB) choose(all []target) []target {
	spans := make([]quorum.Span, 0, len(all))
	live := make([]target, 0, len(all))
	for _, t := range all {
		if d.c.replica(t.node) == nil {
			continue
		}
		cost := 1
		if t.node == d.c.node {
			cost = 0
		}
		live = append(live, t)
		spans = append(spans, quorum.Span{Begin: t.Begin, End: t.End, Cost: cost})
	}
	picked, ok := quorum.Cover(spans)
	if !ok {
		return nil
	}
	out := make([]target, len(picked))
	for i, p := range picked {
		out[i] = live[p]
	}
	return out
}

// covered returns one live copy per range, in ring order, or the error that
// says that some range has none. Which copies those are is worked out again
// when a node has come or gone.
func (d *DB) covered() ([]target, error) {
	epoch := d.c.here.epoch.Load()
	c := d.cover.Load()
	if c == nil || c.epoch != epoch {
		c = &cover{epoch: epoch, picked: d.choose(d.all())}
		d.cover.Store(c)
	}
	if c.picked == nil {
		return nil, errNoCopy()
	}
	return c.picked, nil
}

// twins returns the copies that hold the same range as t, that of this node
// first: whichever of them is read, the listing is the same.
func (d *DB) twins(t target) []target {
	s := d.stretchAt(t.Begin)
	same := func(o target) bool { return o.name == t.name }
	if !slices.ContainsFunc(s.near, func(o target) bool { return !same(o) }) {
		return s.near
	}
	out := make([]target, 0, len(s.near))
	for _, o := range s.near {
		if same(o) {
			out = append(out, o)
		}
	}
	return out
}

// Meta returns the metadata behind the handle. It must not be changed.
func (d *DB) Meta() *meta.Database { return d.meta }

// key names the database and no other one that had or will have its name.
func (d *DB) key() string { return d.meta.Name + "." + d.meta.Suffix }

// Name returns the name of the database.
func (d *DB) Name() string { return d.meta.Name }

// owner returns the stretch that a document belongs to.
func (d *DB) owner(id string) *stretch {
	return &d.stretches[d.ownerIndex(id)]
}

func (d *DB) ownerIndex(id string) int {
	if len(d.stretches) == 1 {
		return 0
	}
	return d.indexAt(ring.Hash(id, d.meta.Partitioned))
}

// indexAt returns the stretch that holds a point of the ring. The first one
// begins at 0, so that the search never returns 0.
func (d *DB) indexAt(hash uint32) int {
	return sort.Search(len(d.stretches), func(i int) bool { return d.stretches[i].Begin > hash }) - 1
}

func (d *DB) stretchAt(hash uint32) *stretch { return &d.stretches[d.indexAt(hash)] }

// elsewhere reports whether other nodes are to hold all that this one is.
func (d *DB) elsewhere() bool {
	return !slices.ContainsFunc(d.stretches, func(s stretch) bool {
		return !slices.ContainsFunc(s.copies, func(t target) bool { return t.node != d.c.node })
	})
}

// limits returns what a shard must hold to.
func (d *DB) limits() shard.Limits {
	l := shard.Limits{
		Revs:        d.meta.RevsLimit,
		PurgedInfos: d.meta.PurgedInfosLimit,
		Partitioned: d.meta.Partitioned,
	}
	if l.Partitioned {
		l.MaxPartitionSize = d.c.maxPartitionSize()
	}
	return l
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
