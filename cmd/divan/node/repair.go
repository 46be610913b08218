package node

import (
	"fmt"
	"time"

	"divan/cluster"
	"divan/cluster/repair"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/httpapi"
	"divan/shard/index"
)

const serviceRepair = "repair" // the service of a node for the repair of copies elsewhere

// peerCopies gives repair the copies of other nodes.
type peerCopies struct{ *wire.Pool }

// Copies implements repair.Peers.
func (p peerCopies) Copies(node string) replica.Copies {
	if peer := p.Peer(node); peer != nil {
		return replica.On(peer)
	}
	return nil
}

// newRepair builds what brings copies in line with each other.
func (n *Node) newRepair() (err error) {
	o := repair.Options{
		Node: n.name, Meta: n.meta, Local: n.local, Config: n.config,
		Own:    replica.NewLocal(replica.Held{Shards: n.local, Indexes: n.indexes, Views: n.views, Searches: n.searches, Place: cluster.PlaceOn(n.name, n.meta)}),
		Logger: n.log.Named("repair"), Index: n.buildIndexes,
	}
	if n.links != nil {
		o.Peers, o.Ask = peerCopies{n.links.pool}, n.links.pool.Ask
	}
	if n.repair, err = repair.New(o); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

// copiesForOthers returns the copies of this node for other nodes: they may only repair
// from them in maintenance mode and once this node was taken out of the cluster, and do
// nothing with the copies of a database that was deleted. Such copies are not written to
// any more, so that a node that went on reading one would never hear of anything new.
func (l *links) copiesForOthers() *replica.Local {
	n := l.node
	return replica.NewLocal(n.coord.Held()).ForPeers(func() bool {
		return n.config.Load().CouchDB.MaintenanceMode == "true" || n.meta.Removed()
	}, n.meta.IsDeleted)
}

// updated is told that a copy of this node has something new.
func (n *Node) updated(name string) {
	n.coord.Updated(name)
	n.wanted.Updated(name)
	n.repair.Updated(name)
}

// tasks lists what runs in the background, for _active_tasks: compactions, and
// pushes to other nodes.
func (n *Node) tasks() []httpapi.Task {
	var out []httpapi.Task
	for _, c := range n.local.Compactions.Running() {
		out = append(out, httpapi.Task{
			Node: n.name, PID: "<0." + c.Copy + ">", Type: "database_compaction", Database: c.Copy, Phase: "document_copy",
			ChangesDone: c.Done, TotalChanges: c.Total, StartedOn: time.UnixMilli(c.StartedMS), Updated: time.UnixMilli(c.UpdatedMS),
		})
	}
	for _, t := range n.indexes.Tasks() {
		kind := "indexer"
		if t.Type == index.Search {
			kind = "search_indexer"
		}
		out = append(out, httpapi.Task{
			Node: n.name, PID: "<0." + t.Copy + "." + t.String() + ">", Type: kind, Database: t.Copy, DesignDocument: t.Design, Index: t.Label,
			FailedDocument: t.Document, Error: t.Error, LeftOut: t.LeftOut,
			ChangesDone: t.Done, TotalChanges: t.Total, StartedOn: time.UnixMilli(t.StartedMS), Updated: time.UnixMilli(t.UpdatedMS),
		})
	}
	out = n.rebalanceTask(append(out, n.splits()...))
	for _, t := range n.repair.Tasks() {
		out = append(out, httpapi.Task{
			Node: n.name, PID: "<0." + t.Copy + "." + t.Node + ">", Type: "shard_sync", Database: t.Copy, Phase: "to " + t.Node,
			ChangesDone: t.At - t.From, TotalChanges: t.To - t.From, StartedOn: time.UnixMilli(t.StartedMS), Updated: time.UnixMilli(t.UpdatedMS),
		})
	}
	return out
}

// figures are the numbers of the node that the HTTP interface cannot know.
func (n *Node) figures() httpapi.Figures {
	orphans, _ := n.engine.Catalog().Orphans() // a folder that cannot be read shows in the log when the next one comes
	stores, scripts := n.engine.Stats(), n.scripts.Stats()
	f := httpapi.Figures{
		OpenDatabases: stores.OpenStores, OrphanedShards: len(orphans), IndexLeftOut: n.indexes.LeftOut(),
		CacheBytes: stores.CacheBytes, MemtableBytes: stores.MemtableBytes, ScriptEngines: scripts.VMs, ScriptBytes: scripts.Bytes,
		OpenSmall: stores.OpenSmall, SmallBytes: stores.SmallBytes, SmallDamaged: stores.SmallDamaged, BitsCorrected: stores.BitsCorrected,
		DiskFree: stores.DiskFree, DiskSize: stores.DiskSize, Commits: stores.Commits, LogLines: n.logger.lines(),
	}
	f.ReplicationBacklog = n.repair.Jobs()
	f.ReplicationLag = n.repair.Lag(n.life)
	f.PerUser = n.perUser.Figures()
	return f
}
