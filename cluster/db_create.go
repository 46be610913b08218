package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// CreateDB makes a database; when it returns, its copies on this node can be
// used. Refusals: fault.IllegalDatabaseName, fault.DatabaseNameTooLong,
// fault.BadRequest for options that cannot be, fault.Exists, and
// fault.Unavailable without a majority for metadata.
func (c *Coordinator) CreateDB(ctx context.Context, name string, o CreateOptions) error {
	cfg := c.config.Load()
	wish := meta.Create{
		Name: name, Q: o.Q, N: o.N, Partitioned: o.Partitioned,
		Security: defaultSecurity(cfg.CouchDB.DefaultSecurity),
	}
	if o.Partitioned && ring.IsSystemName(name) {
		return fault.New(fault.BadRequest, "Cannot partition a system database")
	}
	if wish.Q == 0 {
		wish.Q = shardsOf(name, cfg.Cluster.Q)
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
	defer c.handles.expect(name)()
	m, err := c.meta.CreateDatabase(ctx, wish)
	if err != nil {
		return err
	}
	d, err := c.handles.get(ctx, c, m)
	if err != nil {
		// Without a copy the name would be taken by a database that cannot be
		// used; a disk that is full is the likely reason.
		if _, undo := c.meta.DeleteDatabase(context.WithoutCancel(ctx), name); undo != nil {
			c.log.Error("database without its copies stays in the map", zap.String("db", name), zap.Error(undo))
		}
		return err
	}
	c.createElsewhere(ctx, d)
	return nil
}

// createWait is how long the answer to a creation waits for the copies on other
// nodes: they can then be written to at once. A node that is slower makes them
// all the same.
const createWait = 2 * time.Second

// createElsewhere makes the copies on other nodes. One that cannot be reached
// makes its copies when it sees the map.
func (c *Coordinator) createElsewhere(ctx context.Context, d *DB) {
	var made sync.WaitGroup
	for _, t := range d.all() {
		rep := c.replica(t.node)
		if t.node == c.node || rep == nil {
			continue
		}
		made.Add(1)
		ok := c.detach(ctx, func(ctx context.Context) {
			defer made.Done()
			err := rep.Create(ctx, t.name, shard.CreateOptions{Partitioned: d.meta.Partitioned})
			if err != nil && !fault.Is(err, fault.Exists) {
				c.log.Warn("copy not made yet", zap.String("copy", t.name), zap.String("node", t.node), zap.Error(err))
			}
		})
		if !ok {
			made.Done()
		}
	}
	all := make(chan struct{})
	if !c.spawn(func() {
		made.Wait()
		close(all)
	}) {
		return
	}
	timer := time.NewTimer(createWait)
	defer timer.Stop()
	select {
	case <-all:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ensure makes the copies of a database that this node is to hold and does not
// have: those of a database that it creates, or those that it should have had
// and that lack, unless they are the only ones, what others hold. All of them
// at once, since making one is waiting for the disk.
func (c *Coordinator) ensure(ctx context.Context, d *DB) error {
	var own []target
	for _, t := range d.all() {
		if t.node == c.node {
			own = append(own, t)
		}
	}
	return each(len(own), func(i int) error {
		err := c.make(ctx, own[i].name, d.meta)
		if err != nil && !fault.Is(err, fault.Exists) {
			return fmt.Errorf("make the copies of %s: %w", d.meta.Name, err)
		}
		return nil
	})
}

// make makes a copy of this node. One that is made with its database has all
// there is; any other one has to be filled from the other copies of its range.
func (c *Coordinator) make(ctx context.Context, name string, m *meta.Database) error {
	o := shard.CreateOptions{Partitioned: m.Partitioned}
	if c.handles.expected(m.Name) {
		return c.local.Create(ctx, name, o)
	}
	others := 0
	for _, s := range m.Shards {
		if m.CopyName(s.Range) == name {
			others = len(s.Nodes) - 1
		}
	}
	return c.local.CreateMissing(ctx, name, o, others)
}

// ensureStill is ensure for a database that may be deleted meanwhile: what is
// made for it then goes again.
func (c *Coordinator) ensureStill(ctx context.Context, d *DB) error {
	if err := c.ensure(ctx, d); err != nil {
		return err
	}
	if m, ok := c.meta.Database(d.meta.Name); ok && m.ID == d.meta.ID {
		return nil
	}
	for _, name := range d.meta.CopiesOn(c.node) {
		c.drop(ctx, name)
	}
	return errNoDatabase()
}
