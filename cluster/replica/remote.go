package replica

import (
	"context"

	"divan/cluster/wire"
)

// Remote is the copies of another node. A node that cannot be reached, or stops
// answering while a call is under way, makes it fail with fault.NodeDown.
type Remote struct{ peer *wire.Peer }

// On returns the copies of a node.
func On(p *wire.Peer) Remote { return Remote{p} }

// Do implements Copies.
func (r Remote) Do(ctx context.Context, c Call) error { return c.On(ctx, r) }
