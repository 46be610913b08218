package node

import (
	"context"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/httpapi/auth"
	"divan/shard"
)

// newDesigns builds what keeps the design documents of databases in use.
func (n *Node) newDesigns() {
	o := designdocs.Options{
		Node: n.name, Scripts: n.scripts, BuiltIn: auth.Rules, Standard: auth.Standard(n.config), Logger: n.log.Named("designdocs"),
		DB: func(ctx context.Context, name string) (*cluster.DB, error) { return n.coord.DB(ctx, name) },
	}
	if n.links != nil {
		o.Peers, o.Nodes = n.links.pool, n.members
	}
	n.designs = designdocs.New(o)
}

// members returns the names of the nodes of the cluster, here or not.
func (n *Node) members() []string {
	nodes := n.meta.Nodes()
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Name
	}
	return names
}

// rules returns what decides on edits of a copy of this node.
func (n *Node) rules(ctx context.Context, copyName, db string) (shard.Validate, error) {
	return n.designs.Validator(ctx, copyName, db)
}

// filter finds a function of a design document as a filter of changes.
func (n *Node) filter(ctx context.Context, f *shard.Filter) (shard.BatchMatcher, error) {
	return n.designs.Filter(ctx, f)
}

// copyDropped is told that a copy of this node was taken away.
func (n *Node) copyDropped(copyName string) { n.indexes.CopyDropped(copyName) }

// designChanged is told that a copy of this node has a new design document.
func (n *Node) designChanged(copyName string) { n.designs.Drop(copyName) }
