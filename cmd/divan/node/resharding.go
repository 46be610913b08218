package node

import (
	"context"
	"fmt"

	"divan/reshard"
	"divan/reshard/rebalance"
)

// newResharder builds what splits shards of this node.
func (n *Node) newResharder() (err error) {
	n.resharder, err = reshard.New(reshard.Options{
		Node: n.base.name, Records: n.meta.Records, Map: n.meta, Copies: n.local.Copies, Clones: n.local.Clones, Index: n.hooks.buildIndexes, Config: n.base.config,
		Logger: n.base.log.Named("reshard"),
	})
	if err != nil {
		return fmt.Errorf("resharding: %w", err)
	}
	return nil
}

// newRebalancer builds what moves copies between nodes.
func (n *Node) newRebalancer() (err error) {
	n.rebalancer, err = rebalance.New(rebalance.Options{
		Node: n.base.name, Map: n.meta, Group: n.meta, Records: n.meta.Records, Table: n.resharder.Table(), Bytes: n.engine.Catalog().DiskUsage, Config: n.base.config,
		Logger: n.base.log.Named("rebalance"), Ask: n.links.pool.Ask, Alive: n.links.alive,
		Behind: func() []string { return n.meta.ClusterVersions().Behind },
	})
	if err != nil {
		return fmt.Errorf("rebalance: %w", err)
	}
	return nil
}

func (n *Node) runRebalancer(ctx context.Context) error {
	if n.rebalancer == nil {
		return untilDone(ctx)
	}
	return n.rebalancer.Run(ctx)
}
