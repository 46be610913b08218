package node

import (
	"context"
	"fmt"
	"time"

	"divan/httpapi"
	"divan/reshard"
	"divan/reshard/job"
	"divan/reshard/rebalance"
)

// newResharder builds what splits shards of this node.
func (n *Node) newResharder() (err error) {
	n.resharder, err = reshard.New(reshard.Options{
		Node: n.name, Records: n.meta.Records, Map: n.meta, Copies: n.local.Copies, Clones: n.local.Clones, Index: n.buildIndexes, Config: n.config,
		Logger: n.log.Named("reshard"),
	})
	if err != nil {
		return fmt.Errorf("resharding: %w", err)
	}
	return nil
}

// newRebalancer builds what moves copies between nodes.
func (n *Node) newRebalancer() (err error) {
	n.rebalancer, err = rebalance.New(rebalance.Options{
		Node: n.name, Map: n.meta, Group: n.meta, Records: n.meta.Records, Table: n.resharder.Table(), Bytes: n.engine.Catalog().DiskUsage, Config: n.config,
		Logger: n.log.Named("rebalance"), Ask: n.links.pool.Ask, Alive: n.links.alive,
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

// rebalanceTask appends the rebalance that this node leads.
func (n *Node) rebalanceTask(to []httpapi.Task) []httpapi.Task {
	if n.rebalancer == nil || n.meta.LeadTerm() == 0 {
		return to
	}
	rec, there := n.rebalancer.Record()
	if !there || rec.State != rebalance.Running || rec.Planned.Copies == 0 { // it is not planned yet, or there is nothing to move
		return to
	}
	return append(to, httpapi.Task{
		Node: n.name, PID: "<0." + rec.ID + ">", Type: "rebalance", Phase: rec.Reason,
		ChangesDone: uint64(rec.Moved.Bytes), TotalChanges: uint64(rec.Planned.Bytes),
		StartedOn: time.Unix(rec.Started, 0), Updated: time.Unix(rec.Updated, 0),
	})
}

// buildIndexes builds the indexes of a copy that is made.
func (n *Node) buildIndexes(ctx context.Context, name, copyName string) error {
	return n.wanted.Build(ctx, name, copyName)
}

// taskType is the name of a job of resharding in _active_tasks; CouchDB has that of splits.
func taskType(t job.Type) string {
	switch t {
	case job.Merge:
		return "shard_merging"
	case job.Move:
		return "shard_moving"
	default:
		return "shard_splitting"
	}
}

// splits lists the shards that are being split, merged or moved.
func (n *Node) splits() []httpapi.Task {
	var out []httpapi.Task
	for _, t := range n.resharder.Tasks() {
		out = append(out, httpapi.Task{
			Node: n.name, PID: "<0." + t.Job + ">", Type: taskType(t.Type), Database: t.Source, Phase: string(t.Step),
			ChangesDone: t.Done, TotalChanges: t.Total, StartedOn: time.UnixMilli(t.StartedMS), Updated: time.UnixMilli(t.UpdatedMS),
		})
	}
	return out
}
