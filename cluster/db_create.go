package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"divan/cluster/events"
	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/shard/ring"
	"divan/storage/fault"
)

// CreateDB makes a database; when it returns, its copies on this node can be
// used. Refusals: fault.IllegalDatabaseName, fault.DatabaseNameTooLong,
// fault.BadRequest for options that cannot be, fault.Exists,
// fault.InsufficientStorage when no other node could have room, and
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
	case c.gone(m):
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

// gone reports whether a database that this node has known is there no more;
// another one may have its name.
func (c *Coordinator) gone(m *meta.Database) bool {
	return isGone(c.meta, m)
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
		undone = c.unwritten(d) && c.takeBack(context.WithoutCancel(ctx), d)
		if undone {
			return errNoDatabase()
		}
		return fanout.NoCopy()
	})
	return undone
}

// unwritten reports whether no client can have written to a database that has its copies on this
// node only, nor can before another one of them is made.
func (c *Coordinator) unwritten(d *DB) bool {
	names, err := c.local.Names()
	if err != nil {
		return false
	}
	own, made := d.meta.CopiesOn(c.node), 0
	for _, name := range own {
		if slices.Contains(names, name) {
			made++
		}
	}
	return made == 0 || (made < len(own) && len(c.meta.Nodes()) == 1)
}

// takeBack deletes a database and what this node has of it.
func (c *Coordinator) takeBack(ctx context.Context, d *DB) bool {
	if err := c.meta.DeleteExactly(ctx, d.meta); err != nil && !fault.Is(err, fault.NotFound) {
		c.log.Error("a creation could not be undone", zap.String("db", d.meta.Name), zap.Error(err))
		return false
	}
	for _, name := range d.meta.CopiesOn(c.node) {
		c.drop(ctx, name)
	}
	return true
}

// reachedElsewhere reports whether another node that can be reached holds a copy of each
// range of which this node holds one.
func (d *replicaSet) reachedElsewhere() bool {
	for i := range d.routing.Routes {
		copies := d.routing.Routes[i].Near
		if copies[0].Node == d.node && !slices.ContainsFunc(copies[1:], func(t fanout.Target) bool { return d.copies(t.Node) != nil }) {
			return false
		}
	}
	return true
}

// PlaceOn returns what tells of a copy what the map says of it on a node.
func PlaceOn(node string, m *meta.Meta) func(name string) replica.Place {
	return func(name string) replica.Place {
		db, one, _ := m.CopyIn(name, node)
		if db == nil {
			return replica.Place{}
		}
		return replica.Place{ID: one.ID, State: one.State, Generation: db.Generation}
	}
}

// maxHearing is how many requests wait for newer maps at once; they hold room that requests
// to other databases need.
const maxHearing = 64

// heard waits, for a little, until this node knows the map of that generation: others may
// wait for the room that this takes. When it has waited in vain for one, it does not wait
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

// ensure makes the copies of a database that this node is to hold and does not
// have. All of them at once, since making one is waiting for the disk.
func (c *Coordinator) ensure(ctx context.Context, d *DB) error {
	var own []ownCopy
	for _, s := range d.meta.Shards {
		if one, here := s.CopyOn(c.node); here {
			own = append(own, ownCopy{d.meta.CopyName(s.Range), s.Range, one})
		}
	}
	return fanout.Each(len(own), func(i int) error {
		err := c.make(ctx, own[i], d.meta)
		if err != nil && !fault.Is(err, fault.Exists) {
			return fmt.Errorf("make the copies of %s: %w", d.meta.Name, err)
		}
		return nil
	})
}

// newFor is how long after its creation a database counts as new: a copy that this node
// makes later, because it was away or cut off, joins and is filled from the others, which may
// have been written to. It is the clock of the node that created the database. Where
// clocks differ by more, a copy is filled for nothing, or answers before repair has brought
// what it lacks, as one does of a node that was away: no acknowledged edit depends on it.
const newFor = time.Minute

// make makes a copy of this node, empty, if it is new. One that is not there and is not new
// was lost: it has to join, or stays lost when no other copy is full.
func (c *Coordinator) make(ctx context.Context, t ownCopy, m *meta.Database) error {
	switch {
	case c.lost.Dropped(t.name):
		return errDropped()
	case c.local.Has(t.name):
		id, err := c.held.Shards.Copies.ID(t.name)
		switch {
		case err != nil && !fault.Is(err, fault.NoCopy):
			return fmt.Errorf("make %s: %w", t.name, err)
		case err == nil && id != t.ID:
			return fault.Newf(fault.Busy, "The directory of copy %d is still in the place of copy %d.", id, t.ID) // a request reads it
		case err == nil:
			return nil
		}
	}
	joining := t.State == ring.StateJoining
	switch {
	case t.State == ring.StateLeaving:
		return nil // what it alone had is gone; repair takes it out of the map
	case t.State == ring.StateCopying, joining && ring.CommandOf(t.ID) > c.meta.MadeCopies(), !joining && c.isNew(t, m):
		_, err := replica.Create.On(ctx, replica.Copy{At: c.local, To: wire.Addressee{Copy: t.ID, Generation: m.Generation}}, replica.CreateRequest{Copy: t.name, ID: t.ID, Partitioned: m.Partitioned})
		if err == nil && joining {
			c.log.Warn("copy is empty, it is filled from the others", zap.String("copy", t.name))
		}
		return err
	case joining || ring.FullBeside(m.Shards, t.Range, t.Copy):
		c.missing.Note(t.name, t.ID)
		return nil // the other ranges can be used
	default:
		if err := c.lost.Miss(t.name); err != nil { // nothing else may tell any more that it was here
			return err
		}
		c.lost.Note(t.name)
		return nil
	}
}

// ownCopy is a copy that the map places on this node.
type ownCopy struct {
	name string
	ring.Range
	ring.Copy
}

// isNew reports whether a full copy of this node that is not there was never made.
func (c *Coordinator) isNew(t ownCopy, m *meta.Database) bool {
	made := ring.CommandOf(t.ID)
	switch {
	case c.lost.Has(t.name) || made <= c.meta.MadeCopies():
		return false
	case !ring.FullBeside(m.Shards, t.Range, t.Copy): // there is nothing to be filled from
		return true
	default:
		return made == m.Born && time.Since(time.Unix(m.Created, 0)) < newFor
	}
}

// otherFull reports whether other copies of the range of a copy of this node are full.
func otherFull(m *meta.Database, name string, one ring.Copy) bool {
	r, _, _, ok := ring.ParseCopyName(name)
	return ok && ring.FullBeside(m.Shards, r, one)
}

// ensureStill is ensure for a database that may have been deleted, or is
// meanwhile: what is made for it then goes again.
func (c *Coordinator) ensureStill(ctx context.Context, d *DB) error {
	if c.gone(d.meta) {
		return errDropped()
	}
	if err := c.ensure(ctx, d); err != nil {
		return err
	}
	own := d.meta.CopiesOn(c.node)
	if !c.gone(d.meta) && !slices.ContainsFunc(own, c.lost.Dropped) {
		return nil
	}
	for _, name := range own {
		c.drop(ctx, name)
	}
	return errDropped()
}
