package node

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/cluster"
	"divan/cluster/config"
	"divan/cluster/setup"
	"divan/shard"
	"divan/shard/query"
	"divan/shard/search/postings"
	"divan/storage"
	"divan/storage/compression"
	"divan/storage/fault"
)

func engineOptions(cfg Config, s *config.Snapshot, d descriptors, log *zap.Logger) storage.Options {
	o := storage.Options{
		Dir: cfg.DataDir, FS: cfg.fileSystem(), Logger: log.Named("storage"), MaxOpen: storage.DefaultMaxOpen, MaxTables: d.tables,
		JoinIndex: postings.Join,
		RowTables: cfg.FS == nil, // another file system: virtual time
	}
	if _, said := s.Get("couchdb", "max_dbs_open"); said { // else the engine's own number
		o.MaxOpen = s.CouchDB.MaxDBsOpen
	}
	if d.stores > 0 {
		o.MaxOpen = min(o.MaxOpen, d.stores)
	}
	return o
}

// compression returns how tables are compressed as it is set now.
func (n *Node) compression() compression.Method {
	return compression.Named(n.config.Load().CouchDB.FileCompression)
}

// settlePatience is how long a node of a cluster waits for the metadata before
// it answers requests without: what it can do then is say so.
const settlePatience = 10 * time.Second

// settle waits for the metadata, which also hashes administrators that were
// given as plain text. A node that waits for others to join, or for a majority
// of them, goes on without.
func (n *Node) settle(ctx context.Context) error {
	if n.links == nil {
		return n.meta.WaitReady(ctx)
	}
	limit := time.NewTimer(settlePatience)
	defer limit.Stop()
	select {
	case <-n.meta.Ready():
		return nil
	case <-n.links.bootstrapper.undecided:
		n.log.Info("waiting for a cluster to form; requests are answered meanwhile, most of them with 503")
	case <-limit.C:
		n.log.Warn("the metadata are not there yet; requests are answered meanwhile, most of them with 503")
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := n.config.HashAdmins(nil); err != nil { // the metadata does it otherwise
		return fmt.Errorf("administrators: %w", err)
	}
	return nil
}

// makeSystemDatabasesAlone makes the system databases of a server that stands alone, as
// POST /_cluster_setup would.
func (n *Node) makeSystemDatabasesAlone(ctx context.Context) error {
	if n.links != nil {
		return nil
	}
	return n.makeSystemDatabases(ctx)
}

func (n *Node) makeSystemDatabases(ctx context.Context) error {
	for _, name := range setup.SystemDatabases() {
		err := n.coord.CreateDB(ctx, name, cluster.CreateOptions{})
		switch {
		case err == nil, fault.Is(err, fault.Exists):
		case fault.Is(err, fault.InsufficientStorage): // what is there can be read
			n.log.Warn("a system database is not made", zap.String("database", name), zap.Error(err))
		default:
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

// compileSelector makes the matcher of a changes feed with filter=_selector.
func compileSelector(heavy query.Gate) func(text []byte) (shard.BatchMatcher, error) {
	return func(text []byte) (shard.BatchMatcher, error) { return query.Compile(text, heavy) }
}
