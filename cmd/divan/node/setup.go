package node

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/meta"
	"divan/httpapi"
	"divan/shard"
	"divan/shard/query"
	"divan/storage"
	"divan/storage/fault"
)

func engineOptions(cfg Config, s *config.Snapshot, log *zap.Logger) storage.Options {
	o := storage.Options{Dir: cfg.DataDir, FS: cfg.fileSystem(), Logger: log.Named("storage")}
	if _, said := s.Get("couchdb", "max_dbs_open"); said { // else the engine's own number
		o.MaxOpen = s.CouchDB.MaxDBsOpen
	}
	return o
}

// settle waits for the metadata, which also hashes administrators that were
// given as plain text.
func (n *Node) settle(ctx context.Context) error { return n.meta.WaitReady(ctx) }

// furnish makes the system databases of a server that stands alone, as
// POST /_cluster_setup would.
func (n *Node) furnish(ctx context.Context) error {
	if !n.config.Load().CouchDB.SingleNode {
		return nil
	}
	for _, name := range meta.SystemDatabases() {
		err := n.coord.CreateDB(ctx, name, cluster.CreateOptions{})
		if err != nil && !fault.Is(err, fault.Exists) {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

// compileSelector makes the matcher of a changes feed with filter=_selector.
func compileSelector(text []byte) (shard.Matcher, error) { return query.Parse(text) }

// tasks lists the compactions that run, for _active_tasks.
func (n *Node) tasks() []httpapi.Task {
	running := n.local.Compactions()
	out := make([]httpapi.Task, 0, len(running))
	for _, c := range running {
		out = append(out, httpapi.Task{
			Node: n.meta.Self(), PID: "<0." + c.Copy + ">", Type: "database_compaction", Database: c.Copy, Phase: "document_copy",
			ChangesDone: c.Done, TotalChanges: c.Total, StartedOn: time.UnixMilli(c.StartedMS), Updated: time.UnixMilli(c.UpdatedMS),
		})
	}
	return out
}

// figures are the numbers of the node that the HTTP interface cannot know.
func (n *Node) figures() httpapi.Figures {
	return httpapi.Figures{OpenDatabases: n.engine.OpenStores()}
}
