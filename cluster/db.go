package cluster

import (
	"slices"
	"sync/atomic"

	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/quorum"
	"divan/shard"
	"divan/shard/ring"
)

// DB is a handle on one database as the metadata described it when the handle
// was made. It is safe for concurrent use and holds nothing that must be
// closed; a request takes one and keeps it.
type DB struct {
	c        *Coordinator
	meta     *meta.Database
	routes   []route
	cover    atomic.Pointer[cover]
	noCopies atomic.Uint64 // how often a node has said that it does not hold its copy
	stale    atomic.Uint64 // how often a copy has refused because it knows a newer map
	newer    atomic.Uint64 // the newest map that a copy has said to know; see renewed
	unheard  atomic.Uint64 // the one that this node was waited for in vain to hear of
}

// cover is one copy per range, as long as no node comes or goes.
type cover struct {
	epoch  uint64          // of presence
	picked []fanout.Target // nil: some range has no copy that can be reached
}

// newDB works out which copies hold what.
func newDB(c *Coordinator, m *meta.Database) *DB {
	d := &DB{c: c, meta: m}
	var all []fanout.Target
	for _, s := range m.Shards {
		name := ring.CopyName(s.Range, m.Name, m.Suffix)
		for _, one := range s.Copies {
			if !one.State.Used() {
				continue
			}
			all = append(all, fanout.Target{
				Range: s.Range, Name: name, Node: one.Node, ID: one.ID, Generation: m.Generation, Joining: one.State == ring.StateJoining,
				Instead: one.Instead,
			})
		}
	}
	d.routes = routes(all, c.node)
	return d
}

// choose picks the copies that a listing reads: one per range, those of this
// node gladly, those that cannot be reached never.
func (d *DB) choose(all []fanout.Target) []fanout.Target {
	spans := make([]quorum.Span, 0, len(all))
	live := make([]fanout.Target, 0, len(all))
	for _, t := range all {
		if d.c.copies(t.Node) == nil {
			continue
		}
		cost := 1
		if t.Node == d.c.node {
			cost = 0
		}
		live = append(live, t)
		spans = append(spans, quorum.Span{Begin: t.Begin, End: t.End, Cost: cost})
	}
	picked, ok := quorum.Cover(spans)
	if !ok {
		return nil
	}
	out := make([]fanout.Target, len(picked))
	for i, p := range picked {
		out[i] = live[p]
	}
	return out
}

// covered returns one live copy per range, in ring order, or the error that
// says that some range has none. Which copies those are is worked out again
// when a node has come or gone.
func (d *DB) covered() ([]fanout.Target, error) {
	epoch := d.c.here.Epoch()
	c := d.cover.Load()
	if c == nil || c.epoch != epoch {
		c = &cover{epoch: epoch, picked: d.choose(d.full())}
		d.cover.Store(c)
	}
	if c.picked == nil {
		return nil, fanout.NoCopy()
	}
	return c.picked, nil
}

// sameRange returns the copies that hold the same range as t, that of this node
// first: whichever of them is read, the listing is the same.
func (d *DB) sameRange(t fanout.Target) []fanout.Target {
	return named(d.routeAt(t.Begin).near, t.Name)
}

// named returns those of some copies that have a name.
func named(copies []fanout.Target, name string) []fanout.Target {
	other := func(o fanout.Target) bool { return o.Name != name }
	if !slices.ContainsFunc(copies, other) {
		return copies
	}
	return slices.DeleteFunc(slices.Clone(copies), other)
}

// Sources returns where rows are read: for each range of the ring, or only for
// that of a partition, the copies in the order in which they are asked. That of
// this node comes first, or with deciding the one that decides edits: it has
// every edit that was acknowledged.
func (d *DB) Sources(partition string, deciding bool) ([][]fanout.Target, error) {
	picked, err := d.holding(partition)
	if err != nil {
		return nil, err
	}
	out := make([][]fanout.Target, len(picked))
	for i, t := range picked {
		s := d.routeAt(t.Begin)
		if deciding {
			out[i] = named(s.copies, t.Name)
		} else {
			out[i] = named(s.near, t.Name)
		}
	}
	return out, nil
}

// Meta returns the metadata behind the handle. It must not be changed.
func (d *DB) Meta() *meta.Database { return d.meta }

// Instance names the database and no other one that had or will have its name: what
// the names of its copies have in common.
func (d *DB) Instance() string { return ring.CopyTail(d.meta.CopyName(ring.Range{})) }

// Name returns the name of the database.
func (d *DB) Name() string { return d.meta.Name }

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
