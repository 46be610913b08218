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

// bootstrap is asked by the metadata how to begin where there are none. A node
// that has shards has lost them, and must not begin anew: nothing would name the
// shards any more.
func (n *Node) bootstrap(ctx context.Context) (f meta.BootstrapPlan, err error) {
	f.New = true
	if n.links != nil {
		f, err = n.links.bootstrapper.found(ctx)
	}
	if err != nil || !f.New {
		return f, err
	}
	names, err := n.engine.Catalog().Names()
	if err != nil || len(names) == 0 {
		return f, err
	}
	return meta.BootstrapPlan{}, fmt.Errorf("%s has no metadata, but %s has %s: without metadata nothing would ever find them again. "+
		"Put the metadata back from a backup, or make them again: divan recover %s",
		metaDir(n.cfg.DataDir), filepath.Join(n.cfg.DataDir, "shards"), shardsOf(names), n.cfg.DataDir)
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

// adviseDamaged adds to an error of damaged metadata what to do about them.
func (n *Node) adviseDamaged(err error) error {
	switch {
	case !errors.Is(err, meta.ErrDamaged):
		return err
	case n.links != nil && len(n.links.id.load().others(n.name)) > 0:
		return fmt.Errorf("%w. The other nodes of the cluster have them: move %s away and start again", err, metaDir(n.cfg.DataDir))
	}
	return fmt.Errorf("%w. Put them back from a backup, or make them again: divan recover %s", err, n.cfg.DataDir)
}

// runMeta runs the metadata.
func (n *Node) runMeta(ctx context.Context) error { return n.adviseDamaged(n.meta.Run(ctx)) }

// Recover makes the metadata of the lone node of a data directory again, which
// no node uses. The settings in cfg are those that the node is started with.
func Recover(ctx context.Context, cfg Config) (_ *meta.Remade, err error) {
	n := &Node{cfg: cfg}
	if err := n.configure(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.logger.close()) }()
	others, err := belongs(cfg.fileSystem(), cfg.DataDir, n.name)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("this node belongs to a cluster with %s, and those have the metadata: move %s away and start the node",
			strings.Join(others, ", "), metaDir(cfg.DataDir))
	}
	engine, err := storage.NewEngine(storage.Options{Dir: cfg.DataDir, FS: cfg.fileSystem(), Logger: n.log})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	stores, err := engine.Catalog().Stored()
	if err != nil {
		return nil, err
	}
	o := meta.Remake{Dir: metaDir(cfg.DataDir), CopyDir: copyDir(cfg.DataDir), Self: n.name}
	for _, s := range stores {
		o.Copies = append(o.Copies, meta.DiskCopy{Name: s.Name, ID: s.CopyID, Partitioned: s.Partitioned})
	}
	return meta.Recover(o)
}
