package node

import (
	"go.uber.org/zap"

	"divan/cluster/config"
	"divan/shard"
	"divan/shard/query"
	"divan/shard/search/postings"
	"divan/storage"
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

// compileSelector makes the matcher of a changes feed with filter=_selector.
func compileSelector(heavy query.Gate) func(text []byte) (shard.BatchMatcher, error) {
	return func(text []byte) (shard.BatchMatcher, error) { return query.Compile(text, heavy) }
}
