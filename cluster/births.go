package cluster

import (
	"context"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/storage/fault"
)

// unsure ends a creation of which failure says that nobody knows what came of
// it. If the database is there by now, this is its creation after all;
// otherwise it is counted on for a while.
func (c *Coordinator) unsure(ctx context.Context, wish *meta.Create, failure error) error {
	c.handles.births.Doubt(wish.ID, wish.Name)
	m, ok := c.meta.Database(wish.Name)
	if !ok || m.ID != wish.ID {
		return failure // if it comes later, there will be an event
	}
	forget, first := c.handles.births.Settle(wish.ID)
	if !first {
		return failure
	}
	defer forget()
	return c.populate(ctx, m)
}

// bear makes the copies of a database that has come, if its creation is in
// doubt: the client was told that nobody knows, but while a node that is to
// hold copies is away, nobody else could ever find out that they are empty.
func (c *Coordinator) bear(ctx context.Context, m *meta.Database) {
	forget, ok := c.handles.births.Settle(m.ID)
	if !ok {
		return
	}
	c.log.Info("creation without an answer has succeeded", zap.String("db", m.Name))
	ok = c.detach(ctx, func(ctx context.Context) {
		defer forget()
		if err := c.populate(ctx, m); err != nil && !fault.Is(err, fault.Closed) {
			c.log.Error("copies of a new database not made", zap.String("db", m.Name), zap.Error(err))
		}
	})
	if !ok {
		forget()
	}
}

// bearAll does that for databases that may have come without an event.
func (c *Coordinator) bearAll(ctx context.Context) {
	for id, name := range c.handles.births.Doubts() {
		if m, ok := c.meta.Database(name); ok && m.ID == id {
			c.bear(ctx, m)
		}
	}
}
