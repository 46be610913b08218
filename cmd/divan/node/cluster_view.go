package node

import (
	"context"

	"divan/httpapi"
)

// clusterView shows the other nodes to the HTTP interface. It implements httpapi.Cluster.
type clusterView struct {
	*invitations
	links *links
}

// Members implements httpapi.Cluster.
func (c clusterView) Members() []string {
	members := c.links.gossip.Members()
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = m.Name
	}
	return out
}

// Ask implements httpapi.Cluster.
func (c clusterView) Ask(ctx context.Context, node, service string, request []byte) ([]byte, error) {
	return c.links.pool.Ask(ctx, node, service, request)
}

// Seeding implements httpapi.Cluster.
func (c clusterView) Seeding() httpapi.SeedStatus {
	return c.links.bootstrapper.status(c.links.members.joined())
}
