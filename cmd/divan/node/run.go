package node

import (
	"context"
	"errors"
)

// parts returns what lives, from the lowest floor up.
func (n *Node) parts() []part {
	system := &systemDatabases{name: n.base.name, alone: n.links == nil, meta: n.meta, coord: n.coord, log: n.base.log}
	if n.links != nil {
		system.seeds, system.log = n.links.bootstrapper.seeds, n.links.log
	}
	rules := &accountRules{alone: n.links == nil, config: n.base.config, meta: n.meta, coord: n.coord, log: n.base.log}
	out := []part{
		{name: "log", run: untilDone, close: n.base.logger.close},
		{name: "storage", run: n.engine.Run, close: n.engine.Close},
		{name: "shard", run: n.local.Run, close: n.local.Close},
		{name: "scripts", run: untilDone, close: n.scripts.Close},
		{name: "indexes", run: n.indexes.Run, close: n.indexes.Close},
	}
	if n.links != nil {
		out = append(out, n.links.parts()...)
	}
	out = append(out, part{name: "metadata", run: n.metadata.run, up: n.metadata.settle, close: func() error {
		return errors.Join(n.meta.Close(), n.links.stopRaft())
	}})
	if n.links != nil {
		out = append(out, part{name: "identity", run: n.links.members.remember, close: nothing})
	}
	out = append(out,
		part{name: "repair", run: n.repair.Run, close: nothing},
		part{name: "design documents", run: untilDone, close: n.designs.Close},
		part{name: "cluster", run: n.coord.Run, close: n.coord.Close, up: system.makeAlone},
		part{name: "wanted indexes", run: n.wanted.Run, close: nothing},
		part{name: "auth", run: n.auth.Run, close: nothing},
		part{name: "accounts", run: rules.run, close: nothing, up: rules.wait},
	)
	if n.links != nil {
		out = append(out, part{name: "system databases", run: system.makeInCluster, close: nothing})
	}
	out = append(out,
		part{name: "resharding", run: n.resharder.Run, close: nothing},
		part{name: "rebalance", run: n.runRebalancer, close: nothing},
		part{name: "ownership", run: n.owners.Run, close: nothing},
		part{name: "replicator", run: n.runReplicator, close: nothing},
		part{name: "databases of accounts", run: n.perUser.Run, close: nothing},
	)
	return append(out, part{name: "http", close: n.listeners.close, run: func(ctx context.Context) error {
		return n.listeners.run(ctx, n.opened, n.api.Stop)
	}})
}

// opened is called when the node answers requests.
func (n *Node) opened() {
	if n.links != nil {
		n.links.gossip.Refresh()
	}
	close(n.ready)
}

// Run serves until ctx ends, Restart is called or a part fails, then stops
// every part, the highest first, so that requests under way can finish. It
// returns ErrRestart after Restart, nil when ctx has ended.
func (n *Node) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	n.report.life = ctx
	up := n.stack.start(ctx, cancel)
	select {
	case <-ctx.Done():
	case <-n.restarting:
	}
	again := ctx.Err() == nil
	if n.links != nil {
		n.links.drain()
	}
	err := n.stack.stop(up)
	if err == nil && again {
		return ErrRestart
	}
	return err
}

// Close releases a node that was built and never run.
func (n *Node) Close() error { return n.stack.closeFrom(0) }
