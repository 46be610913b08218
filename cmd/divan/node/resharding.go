package node

import (
	"context"
	"fmt"
	"time"

	"divan/cluster"
	"divan/httpapi"
	"divan/reshard"
	"divan/reshard/job"
)

// newResharder builds what splits shards of this node.
func (n *Node) newResharder() (err error) {
	n.resharder, err = reshard.New(reshard.Options{
		Node: n.name, Records: n.meta, Map: n.meta, Copies: n.local, Index: n.newIndexes().Build, Config: n.config,
		Logger: n.log.Named("reshard"),
	})
	if err != nil {
		return fmt.Errorf("resharding: %w", err)
	}
	return nil
}

// newIndexes returns what builds the indexes of copies that are made.
func (n *Node) newIndexes() *reshard.Indexes {
	return &reshard.Indexes{
		DB:      func(ctx context.Context, name string) (*cluster.DB, error) { return n.coord.DB(ctx, name) },
		Designs: n.designs, Views: n.views, Logger: n.log.Named("reshard"),
	}
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
