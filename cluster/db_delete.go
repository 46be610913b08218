package cluster

import (
	"context"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// DeleteDB removes a database with all its documents. Once it returns nobody
// sees the database any more; requests that had begun fail or end. The error
// is fault.NotFound "Database does not exist." when there is none, and
// fault.Unavailable without a majority for metadata.
func (c *Coordinator) DeleteDB(ctx context.Context, name string) error {
	m, err := c.meta.DeleteDatabase(ctx, name)
	if err != nil {
		return err
	}
	c.handles.forget(name)
	for _, copyName := range m.CopiesOn(c.node) {
		c.drop(context.WithoutCancel(ctx), copyName)
	}
	return nil
}

// drop removes a copy from this node's disk. One that cannot be removed now is
// removed by the next reconciliation.
func (c *Coordinator) drop(ctx context.Context, name string) {
	err := c.local.Drop(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		c.log.Warn("copy of a deleted database stays for now", zap.String("copy", name), zap.Error(err))
	}
}
