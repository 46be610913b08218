package node

import (
	"divan/cluster/designdocs"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/reshard/rebalance"
)

// services are those of this node for others.
func (n *Node) services() map[string]wire.Handler {
	return map[string]wire.Handler{
		serviceMeta:   n.meta.Answer,
		serviceRepair: n.repair.Answer,
		serviceHTTP:   n.api.ServeNode,

		designdocs.Service: n.designs.Answer,
		rebalance.Service:  n.rebalancer.Answer,
	}
}

// copiesForOthers returns the copies of this node for other nodes: they may only repair
// from them in maintenance mode and once this node was taken out of the cluster, and do
// nothing with the copies of a database that was deleted. Such copies are not written to
// any more, so that a node that went on reading one would never hear of anything new.
func (n *Node) copiesForOthers() *replica.Local {
	return replica.NewLocal(n.coord.Held()).ForPeers(func() bool {
		return n.base.config.Load().CouchDB.MaintenanceMode == "true" || n.meta.Removed()
	}, n.meta.IsDeleted)
}
