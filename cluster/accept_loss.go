package cluster

import (
	"context"
	"slices"

	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// LostCopies returns the copies of this node, by name, that are gone and that no
// other node has: requests for their ranges are refused.
func (c *Coordinator) LostCopies() []string { return c.lost.Names() }

// AcceptLoss gives up what a lost copy of this node held: it is made again, empty.
// The errors are fault.NotFound when no database places such a copy here, and
// fault.BadRequest when it is not lost, or others have what it held.
func (c *Coordinator) AcceptLoss(ctx context.Context, name string) error {
	_, dbName, _, _ := ring.ParseCopyName(name)
	m, ok := c.meta.Database(dbName)
	if !ok || !slices.Contains(m.CopiesOn(c.node), name) {
		return fault.Newf(fault.NotFound, "No database has a shard %s on this node.", name)
	}
	return c.handles.turn(newDB(c, m), func() error {
		if c.keeper.gone(m) {
			return errNoDatabase()
		}
		_, one, _ := c.meta.CopyIn(name, c.node)
		if one.State == ring.StateJoining || otherFull(m, name, one) {
			return fault.Newf(fault.BadRequest, "%s is not lost: it is filled from the copies on other nodes.", name)
		}
		return c.lost.Accept(context.WithoutCancel(ctx), name, shard.CreateOptions{ID: one.ID, Partitioned: m.Partitioned})
	})
}
