package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"divan/cluster/meta"
	"divan/shard/ring"
	"divan/storage"
)

// copyDir is where copies of the metadata are kept.
func copyDir(dataDir string) string { return filepath.Join(dataDir, "recovery") }

// InspectMeta reads the metadata of a data directory that no node uses, and
// compares them with the names of the shards there.
func InspectMeta(dataDir string, onDisk []string) *meta.Inspection {
	return meta.Inspect(metaDir(dataDir), copyDir(dataDir), onDisk)
}

// maxNamed is how many databases a message names.
const maxNamed = 5

// shardsOf says of which databases copies are.
func shardsOf(names []string) string {
	var dbs []string
	for _, name := range names {
		if _, db, _, ok := ring.ParseCopyName(name); ok && !slices.Contains(dbs, db) {
			dbs = append(dbs, db)
		}
	}
	slices.Sort(dbs)
	text := strings.Join(dbs[:min(maxNamed, len(dbs))], ", ")
	if len(dbs) > maxNamed {
		text += ", …"
	}
	return fmt.Sprintf("%d shards of %d databases (%s)", len(names), len(dbs), text)
}

// Recover makes the metadata of the lone node of a data directory again, which
// no node uses. The settings in cfg are those that the node is started with.
func Recover(ctx context.Context, cfg Config) (_ *meta.Remade, err error) {
	b := &base{cfg: cfg}
	if err := b.configure(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.logger.close()) }()
	others, err := belongs(cfg.fileSystem(), cfg.DataDir, b.name)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("this node belongs to a cluster with %s, and those have the metadata: move %s away and start the node",
			strings.Join(others, ", "), metaDir(cfg.DataDir))
	}
	engine, err := storage.NewEngine(storage.Options{Dir: cfg.DataDir, FS: cfg.fileSystem(), Logger: b.log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	stores, err := engine.Catalog().Stored()
	if err != nil {
		return nil, err
	}
	o := meta.Remake{Dir: metaDir(cfg.DataDir), CopyDir: copyDir(cfg.DataDir), Self: b.name}
	for _, s := range stores {
		o.Copies = append(o.Copies, meta.DiskCopy{Name: s.Name, ID: s.CopyID, Partitioned: s.Partitioned})
	}
	return meta.Recover(o)
}
