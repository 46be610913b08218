package cluster

import (
	"slices"
	"sort"

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
}

// DB is a handle on one database as the metadata described it when the handle
// was made. It is immutable, safe for concurrent use, and holds nothing that
// must be closed; a request takes one and keeps it.
type DB struct {
	c         *Coordinator
	meta      *meta.Database
	stretches []stretch
	cover     []target // one copy per range, the copies of this node first; nil when there is none
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
	d.stretches = stretches(all)
	d.cover = d.choose(all)
	return d
}

// stretches cuts the ring wherever a range begins.
func stretches(all []target) []stretch {
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
		out = append(out, s)
	}
	return out
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
// says that some range has none.
func (d *DB) covered() ([]target, error) {
	for _, t := range d.cover {
		if d.c.replica(t.node) == nil {
			return d.recover()
		}
	}
	if d.cover == nil {
		return d.recover()
	}
	return d.cover, nil
}

// recover chooses again, because a node went or came since the handle was made.
func (d *DB) recover() ([]target, error) {
	if picked := d.choose(d.all()); picked != nil {
		return picked, nil
	}
	return nil, errNoCopy()
}

// Meta returns the metadata behind the handle. It must not be changed.
func (d *DB) Meta() *meta.Database { return d.meta }

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
	hash := ring.Hash(id, d.meta.Partitioned)
	// The first stretch begins at 0, so the search never returns 0.
	return sort.Search(len(d.stretches), func(i int) bool { return d.stretches[i].Begin > hash }) - 1
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
