package node

import (
	"slices"
	"strconv"

	"divan/httpapi/core"
	"divan/reshard/rebalance"
	"divan/storage/doc"
)

// clusterFigures lists the metrics about the other nodes: how far their copies
// are behind, whether they are there, and what the group has agreed on.
func clusterFigures(a *core.API) []runtimeFigure {
	m, node := a.Deps.Meta, nodeFigures(a)
	gauge := func(name, help, label string, value float64) runtimeFigure {
		return runtimeFigure{name, help, "gauge", label, value}
	}
	counter := func(name, help string, value uint64) runtimeFigure {
		return runtimeFigure{name, help, "counter", "", float64(value)}
	}
	nodes, alive, versions := m.Nodes(), a.Members(), m.ClusterVersions()
	out := []runtimeFigure{
		gauge("couchdb_internal_replication_jobs", "pushes between copies that run or wait", "", float64(node.ReplicationBacklog)),
		gauge("couchdb_internal_replication_lag", "changes of copies of this node that other copies are known to lack", "", float64(node.ReplicationLag)),
		gauge("couchdb_metadata_leader", "1 when this node leads the group that agrees on metadata", "", truth(m.Leader() == m.Self())),
		gauge("couchdb_metadata_has_leader", "1 when this node knows who leads", "", truth(m.Leader() != "")),
		gauge("couchdb_metadata_applied_index", "the last command on metadata that this node has applied", "", float64(m.Applied())),
		gauge("couchdb_metadata_commit_index", "the last entry of the log that this node knows to be agreed on", "", float64(m.CommitIndex())),
		gauge("couchdb_lost_shards", "shards of this node whose files are gone and that no other node has", "", float64(len(a.Deps.Coordinator.LostCopies()))),
		gauge("couchdb_joining_shards", "shards of this node that are being filled from other nodes and do not answer yet", "", float64(len(a.Deps.Coordinator.JoiningCopies()))),
		gauge("couchdb_orphaned_shards", "shards of this node that no database names and that were set aside", "", float64(node.OrphanedShards)),
		gauge("couchdb_cluster_version_known", "the newest version of the cluster that this program knows", "", float64(versions.Known)),
		gauge("couchdb_cluster_version_usable", "the newest version of the cluster that all members know", "", float64(versions.Usable)),
		gauge("couchdb_cluster_version_written", "the newest version of the cluster that its metadata need", "", float64(versions.Written)),
		counter("couchdb_peruser_databases_created_total", "databases of accounts that this node has made", node.PerUser.Created),
		counter("couchdb_peruser_databases_deleted_total", "databases of deleted accounts that this node has deleted", node.PerUser.Deleted),
		counter("couchdb_peruser_security_changes_total", "security objects of databases of accounts that this node has changed", node.PerUser.Secured),
		counter("couchdb_peruser_failures_total", "attempts to do one of these that have failed", node.PerUser.Failures),
		gauge("couchdb_cluster_nodes", "nodes that belong to the cluster", "", float64(len(nodes))),
	}
	if a.Deps.Rebalance != nil {
		rec, _ := a.Deps.Rebalance.Record()
		if rec == nil {
			rec = &rebalance.Record{}
		}
		out = append(out, gauge("couchdb_rebalance_running", "1 while copies are moved between nodes until these are equally full, or drained", "", truth(rec.State == rebalance.Running)))
		sums := []struct {
			label string
			rebalance.Sum
		}{{`{state="planned"}`, rec.Planned}, {`{state="moved"}`, rec.Moved}, {`{state="failed"}`, rec.Failed}}
		for _, s := range sums {
			out = append(out, gauge("couchdb_rebalance_copies", "copies of shards of the rebalance that was asked for last", s.label, float64(s.Copies)))
		}
		for _, s := range sums {
			out = append(out, gauge("couchdb_rebalance_bytes", "bytes of copies of shards of the rebalance that was asked for last", s.label, float64(s.Bytes)))
		}
	}
	for _, n := range nodes {
		label := "{node=" + strconv.Quote(n.Name) + "}"
		out = append(out, gauge("couchdb_cluster_node_up", "1 when the node can be reached from here", label, truth(slices.Contains(alive, n.Name))))
	}
	return out
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// appendMetadata appends what the node knows of the group, for _system.
func appendMetadata(a *core.API, dst []byte) []byte {
	m := a.Deps.Meta
	dst = doc.AppendString(append(dst, `{"leader":`...), m.Leader())
	dst = core.AppendStrings(append(dst, `,"voters":`...), m.Voters())
	dst = strconv.AppendUint(append(dst, `,"applied_index":`...), m.Applied(), 10)
	dst = strconv.AppendUint(append(dst, `,"commit_index":`...), m.CommitIndex(), 10)
	return append(dst, '}')
}
