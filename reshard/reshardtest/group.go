// Package reshardtest has a model of the metadata that splits of shards stand on: records,
// and maps whose copies change as docs/decisions/0040-splitting.md allows it.
package reshardtest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"divan/cluster/broadcast"
	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Group holds the records that the nodes of a cluster have agreed on. It is safe for
// concurrent use.
type Group struct {
	changed broadcast.Broadcast

	mu      sync.Mutex
	records []meta.Record // sorted by key
	dbs     map[string]*meta.Database
	nodes   []meta.Node // members
	last    uint64      // version of a record or id of a copy
	down    bool
}

// NewGroup returns one of those nodes, without databases.
func NewGroup(nodes ...string) *Group {
	g := &Group{dbs: map[string]*meta.Database{}}
	for _, n := range nodes {
		g.nodes = append(g.nodes, meta.Node{Name: n})
	}
	return g
}

// Create makes a database with a full copy of each range on every node.
func (g *Group) Create(name string, ranges ...ring.Range) *meta.Database {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	db := &meta.Database{Name: name, Suffix: "1763600000", ID: [16]byte{byte(g.last), byte(g.last >> 8)}}
	for _, r := range ranges {
		s := ring.Shard{Range: r}
		for _, n := range g.nodes {
			g.last++
			s.Copies = append(s.Copies, ring.Copy{ID: g.last, Node: n.Name})
		}
		db.Shards = append(db.Shards, s)
	}
	g.dbs[name] = db
	return db
}

// Delete deletes a database.
func (g *Group) Delete(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.dbs, name)
}

// SetDown says whether there is no leader.
func (g *Group) SetDown(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
}

// propose runs f when there is a leader.
func (g *Group) propose(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return fault.New(fault.Unavailable, "There is no leader.")
	}
	return f()
}

// Records returns the records whose keys have a prefix.
func (g *Group) Records(prefix string) []meta.Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []meta.Record
	for _, r := range g.records {
		if strings.HasPrefix(r.Key, prefix) {
			out = append(out, r)
		}
	}
	return out
}

// PutRecord puts a record in the place of that of a version.
func (g *Group) PutRecord(ctx context.Context, key string, value []byte, version uint64) (next uint64, err error) {
	err = g.propose(ctx, func() error {
		i, there := slices.BinarySearchFunc(g.records, key, func(r meta.Record, key string) int { return strings.Compare(r.Key, key) })
		if there && g.records[i].Version != version || !there && version != 0 {
			return fault.New(fault.Conflict, "Another record is there.")
		}
		if there {
			g.records = slices.Delete(slices.Clone(g.records), i, i+1)
		}
		if value != nil {
			g.last++
			next = g.last
			g.records = slices.Insert(slices.Clone(g.records), i, meta.Record{Key: key, Value: bytes.Clone(value), Version: next})
		}
		g.changed.Tell()
		return nil
	})
	return next, err
}

// RecordsChanged returns a channel that is closed at the next change.
func (g *Group) RecordsChanged() <-chan struct{} { return g.changed.Next() }

// CatchUp fails without a leader.
func (g *Group) CatchUp(ctx context.Context) error {
	return g.propose(ctx, func() error { return nil })
}

// Node returns a member.
func (g *Group) Node(name string) (meta.Node, bool) {
	for _, n := range g.Nodes() {
		if n.Name == name {
			return n, true
		}
	}
	return meta.Node{Name: name}, false
}

// Nodes returns the members.
func (g *Group) Nodes() []meta.Node {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.nodes)
}

// PutNode adds a member, or changes one.
func (g *Group) PutNode(n meta.Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.nodes = append(slices.DeleteFunc(slices.Clone(g.nodes), func(o meta.Node) bool { return o.Name == n.Name }), n)
	slices.SortFunc(g.nodes, func(a, b meta.Node) int { return strings.Compare(a.Name, b.Name) })
}

// RemoveNode takes a member out; what the maps place on it stays.
func (g *Group) RemoveNode(ctx context.Context, name string) error {
	return g.propose(ctx, func() error {
		g.nodes = slices.DeleteFunc(slices.Clone(g.nodes), func(n meta.Node) bool { return n.Name == name })
		return nil
	})
}

// LeadTerm is that of a caller that leads, 0 while there is no leader.
func (g *Group) LeadTerm() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return 0
	}
	return 1
}

// Databases returns all databases.
func (g *Group) Databases() meta.Databases {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out meta.Databases
	for _, db := range g.dbs {
		out.Set = out.With(db)
	}
	return out
}

// Database returns a database.
func (g *Group) Database(name string) (*meta.Database, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	db, ok := g.dbs[name]
	return db, ok
}

// change changes the shards of a database.
func (g *Group) change(name string, id [16]byte, f func(shards []ring.Shard) ([]ring.Shard, bool)) {
	old, ok := g.dbs[name]
	if !ok || old.ID != id {
		return
	}
	if shards, ok := f(old.Shards); ok {
		db := *old
		db.Shards = shards
		g.dbs[name] = &db
	}
}

// AddCopies adds copies by the rules of package ring.
func (g *Group) AddCopies(ctx context.Context, name string, id [16]byte, copies []ring.Addition) error {
	return g.propose(ctx, func() error {
		ok := true
		g.change(name, id, func(shards []ring.Shard) (out []ring.Shard, _ bool) {
			out, ok = ring.Add(shards, copies, g.ids())
			return out, ok
		})
		if !ok {
			return fault.New(fault.Conflict, "The nodes do not have the full copies of that range that this needs, or others are in the way.")
		}
		return nil
	})
}

func (g *Group) ids() *ring.NewCopies {
	g.last++
	return ring.IDsOf(g.last)
}

// ChangeCopies changes the states of copies, as far as the rules of package ring allow.
func (g *Group) ChangeCopies(ctx context.Context, changes []meta.CopyChange) error {
	return g.propose(ctx, func() error {
		for _, ch := range changes {
			g.apply(ch.Name, ch.ID, ch.Change)
		}
		return nil
	})
}

func (g *Group) apply(name string, id [16]byte, changes ...ring.Change) {
	g.change(name, id, func(shards []ring.Shard) ([]ring.Shard, bool) { return ring.Apply(shards, changes, g.ids()) })
}

// Settle does what nodes do by themselves: joining copies are filled and become full, full ones
// of their node leave for them, and leaving ones go.
func (g *Group) Settle(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	db, ok := g.dbs[name]
	if !ok {
		return
	}
	var full []uint64
	together := make(map[string][]ring.Change) // by node
	for _, s := range db.Shards {
		for _, c := range s.Full() {
			full = append(full, c.ID)
		}
	}
	for _, s := range db.Shards {
		for _, c := range s.Copies {
			switch c.State {
			case ring.StateJoining:
				become := ring.Change{Copy: c.ID, To: ring.StateFull, Filled: full}
				g.apply(name, db.ID, become)
				together[c.Node] = append(together[c.Node], become)
			case ring.StateLeaving:
				g.apply(name, db.ID, ring.Change{Copy: c.ID, To: ring.StateGone})
			case ring.StateFull:
				if ch, ok := ring.Moved(db.Shards, &s, c.Node); ok {
					g.apply(name, db.ID, ch)
				}
			default:
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(together)) {
		come, all := together[node], slices.Clone(together[node])
		for _, s := range db.Shards {
			if c, ok := s.CopyOn(node); ok && c.State == ring.StateFull {
				g.apply(name, db.ID, append(slices.Clone(come), ring.Change{Copy: c.ID, To: ring.StateLeaving})...)
				all = append(all, ring.Change{Copy: c.ID, To: ring.StateLeaving})
			}
		}
		g.apply(name, db.ID, all...) // of parts that are merged
	}
}
