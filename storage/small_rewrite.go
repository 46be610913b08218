package storage

import (
	"bytes"
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2/sstable"
	"go.uber.org/zap"

	"divan/storage/instance"
	"divan/storage/small"
)

// smallRewriter writes what can be read of all small stores into new tables of their instance.
type smallRewriter struct {
	env    *environment
	cache  *storeCache
	damage *small.Damage
}

// openSmall returns the small stores that are open.
func (w *smallRewriter) openSmall() map[[16]byte]*Store {
	open := map[[16]byte]*Store{}
	for _, m := range w.cache.members() {
		if s, ok := m.(*Store); ok && s.small.takesBatches() && s.Err() == nil {
			open[s.id.UUID] = s
		}
	}
	return open
}

// run implements smallHost.rewrite.
func (w *smallRewriter) run(ctx context.Context, s *smallStores) error {
	if err := spaceToRewrite(&w.env.space, s); err != nil {
		return err
	}
	known, err := w.env.dirs.Stores(shardsDir, "")
	if err != nil {
		return instance.DiskError("list shards", err)
	}
	names, stores := map[[16]byte]string{}, make([][16]byte, 0, len(known))
	for _, k := range known {
		if k.Small {
			stores, names[k.UUID] = append(stores, k.UUID), k.Name
		}
	}
	slices.SortFunc(stores, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	r := small.Rewrite{FS: w.env.o.FS, Dir: s.inst.Dir, Aside: w.env.path(OrphanedDir, SmallDir+"."), Table: s.inst.WriterOptions(small.Kind()), Err: s.Err, Mends: s.inst.Health().Mends, Certain: w.damage.Certain()}
	if w.env.o.RowTables {
		r.Table.TableFormat = sstable.TableFormatPebblev4 // as tables of attachments
	}
	if r.Empty, err = w.env.emptyDB(); err != nil {
		return err
	}
	begun := w.damage.Begin()
	open := w.openSmall()
	r.Held = func(store [16]byte) (*small.View, bool) {
		if s := open[store]; s != nil {
			return s.small.view.Load(), true
		}
		return nil, false
	}
	damaged, kept, err := r.Run(ctx, s.inst.DB(), slices.Compact(stores))
	for _, s := range open {
		s.small.rewrites.Store(begun)
	}
	if r.Unread {
		w.damage.Unread()
	}
	if err != nil {
		return err
	}
	w.env.log.Error("files of small shards were damaged, and are written anew without what cannot be read",
		zap.Int("shards", len(stores)), zap.Int("damaged", len(damaged)), zap.String("kept", kept))
	for _, store := range damaged {
		w.env.log.Error("what a small shard had is gone", zap.String("store", names[store]))
	}
	return nil
}
