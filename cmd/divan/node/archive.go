package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"

	"divan/cluster/meta"
)

// archiveMeta makes room for the metadata of a cluster that the node was invited
// to. Its own are kept in a directory beside, in case that was a mistake. It
// may be repeated after a crash at any point.
func (n *Node) archiveMeta(ctx context.Context, id *identityStore) error {
	now := id.load()
	if !now.restarts() {
		return nil
	}
	switch {
	case n.cfg.Meta != nil:
		*n.cfg.Meta = memoryStores()
	case !n.cfg.MetaInMemory:
		if err := archiveDir(metaDir(n.cfg.DataDir)); err != nil {
			return fmt.Errorf("put the metadata from before aside: %w", err)
		}
	}
	n.log.Info("this node gives up its own metadata and joins a cluster", zap.String("uuid", now.UUID))
	return id.update(ctx, func(i *identity) { i.Archived = true })
}

// memoryStores returns empty metadata.
func memoryStores() meta.Stores {
	store := raft.NewInmemStore()
	return meta.Stores{Log: store, Stable: store, Snapshots: raft.NewInmemSnapshotStore()}
}

// archiveDir renames a directory, if it is there, to a name that says what it
// was. What already has that name is replaced.
func archiveDir(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	before := dir + ".before"
	if err := os.RemoveAll(before); err != nil {
		return err
	}
	if err := os.Rename(dir, before); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// restore makes the settings of this node again that were made before it was
// invited, when it is a member of the cluster that invited it.
func (l *links) restore(ctx context.Context) error {
	id := l.id.load()
	if len(id.Settings) == 0 || id.Invited {
		return nil
	}
	for section, keys := range id.Settings {
		for key, value := range keys {
			if _, err := l.node.meta.Config.Set(ctx, meta.ConfigChange{Section: section, Key: key, Value: value}); err != nil {
				return fmt.Errorf("set [%s] %s again: %w", section, key, err)
			}
		}
	}
	return l.id.update(ctx, func(i *identity) {
		if !i.Invited { // invited meanwhile
			i.Settings = nil
		}
	})
}
