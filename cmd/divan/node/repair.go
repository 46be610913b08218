package node

import (
	"fmt"

	"divan/cluster"
	"divan/cluster/repair"
	"divan/cluster/replica"
	"divan/cluster/wire"
)

const serviceRepair = "repair" // the service of a node for the repair of copies elsewhere

// peerCopies gives repair the copies of other nodes.
type peerCopies struct{ *wire.Pool }

// Copies implements repair.Peers.
func (p peerCopies) Copies(node string) replica.Copies {
	if peer := p.Peer(node); peer != nil {
		return replica.On(peer)
	}
	return nil
}

// newRepair builds what brings copies in line with each other.
func (n *Node) newRepair() (err error) {
	o := repair.Options{
		Node: n.base.name, Meta: n.meta, Local: n.local, Config: n.base.config,
		Own:    replica.NewLocal(replica.Held{Shards: n.local, Indexes: n.indexes, Views: n.views, Searches: n.searches, Place: cluster.PlaceOn(n.base.name, n.meta)}),
		Logger: n.base.log.Named("repair"), Index: n.hooks.buildIndexes,
	}
	if n.links != nil {
		o.Peers, o.Ask = peerCopies{n.links.pool}, n.links.pool.Ask
	}
	if n.repair, err = repair.New(o); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}
