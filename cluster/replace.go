package cluster

import "context"

// ReplaceNode gives all copies of a node to a member, and takes the first one
// out of the cluster. The copies there are new and are filled from the full ones of the
// other nodes. Unless force is set, it is refused when something would be given up: that is
// fault.Conflict. The other errors are those of meta.ReplaceNode.
func (c *Coordinator) ReplaceNode(ctx context.Context, old, by string, force bool) error {
	return c.meta.ReplaceNode(ctx, old, by, force)
}
