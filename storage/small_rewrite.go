package storage

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/instance"
	"divan/storage/small"
)

const (
	rewriteAgain = 30 * time.Second // after one that failed
	rewriteEvery = time.Hour        // at most: what is kept of each takes room
)

// openSmall returns the small stores that are open.
func (e *Engine) openSmall() map[[16]byte]*Store {
	e.mu.Lock()
	defer e.mu.Unlock()
	open := map[[16]byte]*Store{}
	for _, en := range e.mu.entries {
		if s, ok := en.store.(*Store); ok && s.isSmall() && s.Err() == nil {
			open[s.id.UUID] = s
		}
	}
	return open
}

// mendSmall writes what can be read of all small stores into new tables, when their compactions failed at a
// damaged file: each write would fail before long, of any of them. Where that fails they are read as
// they are. Nothing is written anew while a table may still be set right. Called before others use the
// instance.
func (e *Engine) mendSmall(s *smallStores) {
	run := e.small.mend.Load()
	switch {
	case run == nil || s.inst.ReadOnly():
		return
	case e.small.damage.Met() && s.inst.Righted():
		e.small.damage.Righted()
		return
	case s.inst.Mends(), !e.small.damage.Due():
		return
	}
	if err := (*run)(s); err != nil {
		e.small.damage.Postpone(rewriteAgain)
		e.log.Error("files of small shards are damaged, and could not be written anew", zap.Error(err), zap.Duration("retry_in", rewriteAgain))
		return
	}
	e.small.damage.Mended(rewriteEvery)
	s.inst.NoteRewritten()
}

// roomToRewrite returns why there is no room for a rewrite: what was there stays.
func (e *Engine) roomToRewrite(s *smallStores) error {
	return e.space.RoomFor(s.inst.FileSize() + diskspace.Kept)
}

// noteDamage looks whether compactions of the instance met a damaged file.
func (e *Engine) noteDamage(s *smallStores) {
	if s.inst.Unreadable() && e.small.damage.Note() {
		e.log.Error("files of small shards are damaged; they are set right or written anew, that once an hour at most")
	}
}

func (e *Engine) rewriteSmall(ctx context.Context, s *smallStores) error {
	if err := e.roomToRewrite(s); err != nil {
		return err
	}
	known, err := e.dirs.Stores(shardsDir, "")
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
	r := small.Rewrite{FS: e.o.FS, Dir: s.inst.Dir, Aside: e.path(OrphanedDir, SmallDir+"."), Table: s.inst.WriterOptions(small.Kind()), Err: s.Err, Mends: s.inst.Mends, Certain: e.small.damage.Certain()}
	if e.o.RowTables {
		r.Table.TableFormat = sstable.TableFormatPebblev4 // as tables of attachments
	}
	if r.Empty, err = e.emptyDB(); err != nil {
		return err
	}
	begun := e.small.damage.Begin()
	open := e.openSmall()
	r.Held = func(store [16]byte) (*small.View, bool) {
		if s := open[store]; s != nil {
			return s.small.Load(), true
		}
		return nil, false
	}
	damaged, kept, err := r.Run(ctx, s.inst.DB(), slices.Compact(stores))
	for _, s := range open {
		s.rewrites.Store(begun)
	}
	if r.Unread {
		e.small.damage.Unread()
	}
	if err != nil {
		return err
	}
	e.log.Error("files of small shards were damaged, and are written anew without what cannot be read",
		zap.Int("shards", len(stores)), zap.Int("damaged", len(damaged)), zap.String("kept", kept))
	for _, store := range damaged {
		e.log.Error("what a small shard had is gone", zap.String("store", names[store]))
	}
	return nil
}
