package cluster

import (
	"context"

	"go.uber.org/zap"

	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/storage/fault"
)

// DeleteDB removes a database with all its documents. Once it returns no client sees the database
// any more, through any node that can be reached; requests that had begun fail or end. The error is
// fault.NotFound "Database does not exist." when there is none, and fault.Unavailable without a
// majority for metadata.
func (c *Coordinator) DeleteDB(ctx context.Context, name string) error {
	m, err := c.meta.DeleteDatabase(ctx, name)
	if err != nil {
		return err
	}
	c.dropCopies(ctx, m)
	return nil
}

// DeleteExactly is DeleteDB for one database and no other that has its name by
// now; that is fault.NotFound.
func (c *Coordinator) DeleteExactly(ctx context.Context, m *meta.Database) error {
	if err := c.meta.DeleteExactly(ctx, m); err != nil {
		return err
	}
	c.dropCopies(ctx, m)
	return nil
}

// dropCopies removes what there is of a database that is deleted.
func (c *Coordinator) dropCopies(ctx context.Context, m *meta.Database) {
	c.handles.forget(m.Name)
	ctx = context.WithoutCancel(ctx)
	soon, cancel := context.WithTimeout(ctx, fanout.MostPatience)
	defer cancel()
	copies := newDB(c, m).routing.All()
	_ = fanout.Each(len(copies), func(i int) error { // what fails is logged
		if t := copies[i]; t.Node == c.node {
			c.keeper.drop(ctx, t.Name)
		} else {
			c.dropElsewhere(soon, t)
		}
		return nil
	})
}

// dropElsewhere removes a copy that another node holds, which does that by
// itself when it hears of the deletion. Until then clients that go on there,
// with a new database of that name, would be served from the old one. A node
// that does not answer soon is not waited for.
func (c *Coordinator) dropElsewhere(ctx context.Context, t ring.Replica) {
	rep := c.replica(t)
	if rep.Away() {
		return
	}
	_, err := replica.Drop.On(ctx, rep, t.Name)
	if err != nil && !fault.Is(err, fault.NoCopy) {
		c.log.Debug("copy of a deleted database stays elsewhere for now",
			zap.String("copy", t.Name), zap.String("node", t.Node), zap.Error(err))
	}
}
