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

// archiveMeta makes space for the metadata of a cluster that the node was invited
// to. Its own are kept in a directory beside, in case that was a mistake. It
// may be repeated after a crash at any point.
func (b *base) archiveMeta(ctx context.Context, id *identityStore) error {
	now := id.load()
	if !now.restarts() {
		return nil
	}
	switch {
	case b.cfg.Meta != nil:
		*b.cfg.Meta = memoryStores()
	case !b.cfg.MetaInMemory:
		if err := archiveDir(metaDir(b.cfg.DataDir)); err != nil {
			return fmt.Errorf("put the metadata from before aside: %w", err)
		}
	}
	b.log.Info("this node gives up its own metadata and joins a cluster", zap.String("uuid", now.UUID))
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
