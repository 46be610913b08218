package node

import (
	"context"
	"time"

	"divan/cluster/meta"
	"divan/cluster/repair"
	"divan/httpapi"
	"divan/replicator/peruser"
	"divan/reshard"
	"divan/reshard/job"
	"divan/reshard/rebalance"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/storage"
)

// report tells the HTTP interface what runs in the background of a node, and the numbers
// that it cannot know.
type report struct {
	name       string
	engine     *storage.Engine
	local      *shard.Local
	scripts    *script.Engine
	indexes    *index.Manager
	meta       *meta.Meta
	repair     *repair.Repair
	resharder  *reshard.Resharder
	rebalancer *rebalance.Rebalancer // nil: the node stands alone
	perUser    *peruser.Keeper
	lines      func() map[string]uint64 // of the log
	life       context.Context          //nolint:containedctx // of Node.Run, for figures, which are asked for without one
}

// tasks lists what runs in the background, for _active_tasks: compactions, and
// pushes to other nodes.
func (r *report) tasks() []httpapi.Task {
	var out []httpapi.Task
	for _, c := range r.local.Compactions.Running() {
		out = append(out, httpapi.Task{
			Node: r.name, PID: "<0." + c.Copy + ">", Type: "database_compaction", Database: c.Copy, Phase: "document_copy",
			ChangesDone: c.Done, TotalChanges: c.Total, StartedOn: time.UnixMilli(c.StartedMS), Updated: time.UnixMilli(c.UpdatedMS),
		})
	}
	for _, t := range r.indexes.Tasks() {
		kind := "indexer"
		if t.Type == index.Search {
			kind = "search_indexer"
		}
		out = append(out, httpapi.Task{
			Node: r.name, PID: "<0." + t.Copy + "." + t.String() + ">", Type: kind, Database: t.Copy, DesignDocument: t.Design, Index: t.Label,
			FailedDocument: t.Document, Error: t.Error, LeftOut: t.LeftOut,
			ChangesDone: t.Done, TotalChanges: t.Total, StartedOn: time.UnixMilli(t.StartedMS), Updated: time.UnixMilli(t.UpdatedMS),
		})
	}
	out = r.rebalanceTask(append(out, r.splits()...))
	for _, t := range r.repair.Tasks() {
		out = append(out, httpapi.Task{
			Node: r.name, PID: "<0." + t.Copy + "." + t.Node + ">", Type: "shard_sync", Database: t.Copy, Phase: "to " + t.Node,
			ChangesDone: t.At - t.From, TotalChanges: t.To - t.From, StartedOn: time.UnixMilli(t.StartedMS), Updated: time.UnixMilli(t.UpdatedMS),
		})
	}
	return out
}

// figures are the numbers of the node that the HTTP interface cannot know.
func (r *report) figures() httpapi.Figures {
	orphans, _ := r.engine.Catalog().Orphans() // a folder that cannot be read shows in the log when the next one comes
	stores, scripts := r.engine.Stats(), r.scripts.Stats()
	f := httpapi.Figures{
		OpenDatabases: stores.OpenStores, OrphanedShards: len(orphans), IndexLeftOut: r.indexes.LeftOut(),
		CacheBytes: stores.CacheBytes, MemtableBytes: stores.MemtableBytes, ScriptEngines: scripts.VMs, ScriptBytes: scripts.Bytes,
		OpenSmall: stores.OpenSmall, SmallBytes: stores.SmallBytes, SmallDamaged: stores.SmallDamaged, BitsCorrected: stores.BitsCorrected,
		DiskFree: stores.DiskFree, DiskSize: stores.DiskSize, Commits: stores.Commits, LogLines: r.lines(),
	}
	f.ReplicationBacklog = r.repair.Jobs()
	f.ReplicationLag = r.repair.Lag(r.life)
	f.PerUser = r.perUser.Figures()
	return f
}

// rebalanceTask appends the rebalance that this node leads.
func (r *report) rebalanceTask(to []httpapi.Task) []httpapi.Task {
	if r.rebalancer == nil || r.meta.LeadTerm() == 0 {
		return to
	}
	rec, there := r.rebalancer.Record()
	if !there || rec.State != rebalance.Running || rec.Planned.Copies == 0 { // it is not planned yet, or there is nothing to move
		return to
	}
	return append(to, httpapi.Task{
		Node: r.name, PID: "<0." + rec.ID + ">", Type: "rebalance", Phase: rec.Reason,
		ChangesDone: uint64(rec.Moved.Bytes), TotalChanges: uint64(rec.Planned.Bytes),
		StartedOn: time.Unix(rec.Started, 0), Updated: time.Unix(rec.Updated, 0),
	})
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
func (r *report) splits() []httpapi.Task {
	var out []httpapi.Task
	for _, t := range r.resharder.Tasks() {
		out = append(out, httpapi.Task{
			Node: r.name, PID: "<0." + t.Job + ">", Type: taskType(t.Type), Database: t.Source, Phase: string(t.Step),
			ChangesDone: t.Done, TotalChanges: t.Total, StartedOn: time.UnixMilli(t.StartedMS), Updated: time.UnixMilli(t.UpdatedMS),
		})
	}
	return out
}
