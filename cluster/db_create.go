package cluster

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"divan/cluster/events"
	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage/fault"
)

// CreateDB makes a database; when it returns, its copies on this node can be
// used. Refusals: fault.IllegalDatabaseName, fault.DatabaseNameTooLong,
// fault.BadRequest for options that cannot be, fault.Exists,
// fault.InsufficientStorage when no other node could have space, and
// fault.Unavailable without a majority for metadata, or when it is not known
// what came of it.
func (c *Coordinator) CreateDB(ctx context.Context, name string, o CreateOptions) error {
	cfg := c.config.Load()
	wish := meta.Create{
		Name: name, ID: meta.NewDatabaseID(), Q: o.Q, N: o.N, Partitioned: o.Partitioned,
		Security: defaultSecurity(cfg.CouchDB.DefaultSecurity),
	}
	if o.Partitioned && ring.IsSystemName(name) {
		return fault.New(fault.BadRequest, "Cannot partition a system database")
	}
	if wish.Q == 0 {
		wish.Q = events.ShardsOf(name, cfg.Cluster.Q)
	}
	if wish.Q < 1 || wish.Q > ring.MaxQ {
		return fault.New(fault.BadRequest, "The `q` value should be a positive integer.")
	}
	if o.N < 0 {
		return fault.New(fault.BadRequest, "The `n` value should be a positive integer.")
	}
	switch {
	case o.Placement != "":
		p, err := ring.ParsePlacement(o.Placement)
		if err != nil {
			return err
		}
		wish.Placement = p
	case o.N == 0:
		wish.N, wish.Placement = cfg.Cluster.N, cfg.Cluster.Placement
	}
	if _, there := c.meta.Database(name); !there && len(c.meta.Nodes()) < 2 {
		if err := c.local.DiskFull(); err != nil {
			return err
		}
	}
	m, err := c.meta.CreateDatabase(ctx, wish)
	if fault.Is(err, fault.Unavailable) { // the outcome is unknown
		if now, ok := c.meta.Database(wish.Name); ok && now.ID == wish.ID {
			m, err = now, nil
		}
	}
	if err != nil {
		return err
	}
	return c.populate(ctx, m)
}

// populate makes the copies of a new database that this node is to hold; other nodes make
// theirs when they hear of it, or are asked for them. A copy that cannot be made, because
// the disk is full, is made later if another node holds one of its range; otherwise
// the creation has failed.
//
// A database that was deleted since is no failure: it had been made before. And a creation is
// undone only if no client can have written to the database, for it has been in the map for a
// while.
func (c *Coordinator) populate(ctx context.Context, m *meta.Database) error {
	d := newDB(c, m)
	// A client that hangs up is no reason to undo what has been agreed on.
	failure := d.explain(ctx, c.handles.secure(context.WithoutCancel(ctx), d))
	switch {
	case failure == nil:
		d.made.Store(true)
		c.handles.put(d)
		return nil
	case c.keeper.gone(m):
		return nil
	case fault.Is(failure, fault.Closed) || c.undo(ctx, d):
		return failure
	case d.reachedElsewhere():
		c.log.Warn("copies of a new database not made yet", zap.String("db", m.Name), zap.Error(failure))
		return nil
	default:
		c.log.Error("database without its copies stays in the map", zap.String("db", m.Name), zap.Error(failure))
		return failure
	}
}

func isGone(group *meta.Meta, m *meta.Database) bool {
	now, ok := group.Database(m.Name)
	return !ok || now.ID != m.ID
}

// undo takes back the creation of a database whose copies this node could not
// make, and reports whether it has. Other nodes make their copies on their own,
// and one copy is enough for an acknowledged document: so all copies must be
// this node's to make, and none may be there. Where there is no other node,
// some may: nothing is written through this node before all are. All that make
// copies take turns with undo, so that none is made before the database is
// gone.
func (c *Coordinator) undo(ctx context.Context, d *DB) bool {
	for _, t := range d.routing.All() {
		if t.Node != c.node {
			return false
		}
	}
	undone := false
	_ = c.handles.turn(d, func() error { // the errors are for those who wait for copies meanwhile
		undone = c.keeper.unwritten(d.meta) && c.takeBack(context.WithoutCancel(ctx), d)
		if undone {
			return errNoDatabase()
		}
		return fanout.NoCopy()
	})
	return undone
}

// takeBack deletes a database and what this node has of it.
func (c *Coordinator) takeBack(ctx context.Context, d *DB) bool {
	if err := c.meta.DeleteExactly(ctx, d.meta); err != nil && !fault.Is(err, fault.NotFound) {
		c.log.Error("a creation could not be undone", zap.String("db", d.meta.Name), zap.Error(err))
		return false
	}
	for _, name := range d.meta.CopiesOn(c.node) {
		c.keeper.drop(ctx, name)
	}
	return true
}

// reachedElsewhere reports whether another node that can be reached holds a copy of each
// range of which this node holds one.
func (d *replicaSet) reachedElsewhere() bool {
	for i := range d.routing.Routes {
		copies := d.routing.Routes[i].Near
		if copies[0].Node == d.node && !slices.ContainsFunc(copies[1:], func(t ring.Replica) bool { return d.copies(t.Node) != nil }) {
			return false
		}
	}
	return true
}

// PlaceOn returns what tells of a copy what the map says of it on a node.
func PlaceOn(node string, m *meta.Meta) func(name string) ring.Replica {
	return func(name string) ring.Replica {
		db, one, _ := m.CopyIn(name, node)
		if db == nil {
			return ring.Replica{}
		}
		return ring.Replica{Copy: one, Name: name, Generation: db.Generation}
	}
}

// maxHearing is how many requests wait for newer maps at once; they hold space that requests
// to other databases need.
const maxHearing = 64

// heard waits, for a little, until this node knows the map of that generation: others may
// wait for the space that this takes. When it has waited in vain for one, it does not wait
// as long again until it hears of that.
func (c *Coordinator) heard(ctx context.Context, generation uint64) error {
	h := &c.handles.hearing
	defer h.waiters.Add(-1)
	if h.waiters.Add(1) > maxHearing {
		return fault.New(fault.Unavailable, "The node does not know the database yet.")
	}
	limit, vain := fanout.NudgeLimit, h.vain.Load()
	deaf := c.meta.Applied() < vain
	if deaf && generation >= vain {
		limit = fanout.ReadPatience
	}
	soon, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.meta.WaitApplied(soon, generation); err != nil {
		if ctx.Err() == nil && (!deaf || generation < vain) {
			h.vain.Store(generation)
		}
		return fault.Wrap(fault.Unavailable, "The node does not know the database yet.", err)
	}
	return nil
}

// makeAsked makes the copies of a database that a request is meant for one of, and that
// the map says should be here.
func (c *Coordinator) makeAsked(ctx context.Context, name string) error {
	m, _, here := c.meta.CopyIn(name, c.node)
	if !here {
		return errDropped()
	}
	err := c.handles.secure(ctx, newDB(c, m))
	if err == nil && !c.local.Has(name) { // it was a turn for an older map
		err = c.handles.secure(ctx, newDB(c, m))
	}
	return err
}

// otherFull reports whether other copies of the range of a copy of this node are full.
func otherFull(m *meta.Database, name string, one ring.Copy) bool {
	r, _, _, ok := ring.ParseCopyName(name)
	return ok && ring.FullBeside(m.Shards, r, one)
}
