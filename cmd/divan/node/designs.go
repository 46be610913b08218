package node

import (
	"context"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/httpapi/auth"
)

// newDesigns builds what keeps the design documents of databases in use.
func (n *Node) newDesigns() {
	o := designdocs.Options{
		Node: n.base.name, Scripts: n.scripts, BuiltIn: auth.Rules, Standard: auth.Standard(n.base.config), Logger: n.base.log.Named("designdocs"),
		DB: func(ctx context.Context, name string) (*cluster.DB, error) { return n.coord.DB(ctx, name) },
	}
	if n.links != nil {
		o.Peers, o.Nodes = n.links.pool, n.links.members.names
	}
	n.designs = designdocs.New(o)
}
