package storage

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/small"
)

// What small stores had that were dropped is on the disk until the tables of the shared instance are
// compacted, which Pebble does when much of a table is deleted. All of it goes within reclaimEvery, and within
// reclaimFull while the disk is full; what one of them had that was compacted, soon: so many of them
// in a reclaimAsked.
const (
	reclaimEvery = time.Hour
	reclaimFull  = 10 * time.Second
	reclaimAsked = time.Minute
	reclaimSlice = 16 << 20 // bytes that are compacted at once, about
	rewriteAgain = 30 * time.Second
)

// runReclaim gives back the room of small stores that were removed, or compacted, when it is time.
func (e *Engine) runReclaim(ctx context.Context) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	all, asked := time.Now(), time.Time{} // when that was done the last time
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if time.Since(asked) >= reclaimAsked {
			if spans := e.small.Take(); len(spans) > 0 {
				if !e.compactSmall(ctx, spans) {
					e.small.Removed.Store(true)
				}
				asked = time.Now()
			}
		}
		wait := reclaimEvery
		if e.space.Full() || e.small.Urgent.Load() {
			wait = reclaimFull
		}
		if time.Since(all) >= wait && e.small.Removed.Swap(false) {
			e.reclaimSmall(ctx)
			all = time.Now()
		}
	}
}

func (e *Engine) reclaimSmall(ctx context.Context) {
	var size int64
	if err := e.withSmall(func(db *pebble.DB) error { size = int64(db.Metrics().DiskSpaceUsage()); return nil }); err != nil {
		e.small.Removed.Store(!fault.Is(err, fault.NoCopy))
		return
	}
	urgent := e.small.Urgent.Swap(false) || e.space.Full()
	done := e.compactSmall(ctx, small.Slices(int(min(1+size/reclaimSlice, 1<<12))))
	if done && urgent {
		if err := e.dropSmallLogs(); err != nil {
			e.log.Warn("logs of small shards could not be given back", zap.Error(err))
		}
	}
	if !done {
		e.small.Removed.Store(true)
		if urgent {
			e.small.Urgent.Store(true)
		}
	}
}

// dropSmallLogs removes logs that are kept to be written over, which opening the instance does.
func (e *Engine) dropSmallLogs() error {
	e.mu.Lock()
	var unused []*entry
	if en := e.mu.entries[SmallDir]; en != nil && en.unused != nil {
		unused = append(unused, e.takeLocked(en))
	}
	e.mu.Unlock()
	if err := e.closeStores(unused); err != nil {
		return err
	}
	s, err := e.reserveSmall()
	if err == nil {
		e.release(&s.handle)
	}
	return err
}

// compactSmall compacts ranges of keys of small stores, one after the other, and reports whether all were.
func (e *Engine) compactSmall(ctx context.Context, spans []pebble.KeyRange) bool {
	s, err := e.reserveSmall()
	if err == nil {
		defer e.release(&s.handle)
	}
	for i := 0; err == nil && i < len(spans); i++ {
		err = s.inst.Compact(ctx, spans[i].Start, spans[i].End)
	}
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NoCopy) {
		e.log.Warn("what small shards had that are deleted or compacted takes room still", zap.Error(err))
	}
	return err == nil
}

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
// they are. Called before others use the instance.
func (e *Engine) mendSmall(s *smallStores) {
	run := e.rewrite.Load()
	if run == nil || s.inst.ReadOnly() || !e.small.ToRewrite() {
		return
	}
	if err := (*run)(s); err != nil {
		e.small.Failed.Add(1)
		e.small.NotBefore(time.Now().Add(rewriteAgain))
		e.log.Error("files of small shards are damaged, and could not be written anew", zap.Error(err), zap.Duration("retry_in", rewriteAgain))
		return
	}
	e.small.Damaged.Store(false)
	e.small.Failed.Store(0)
	e.small.NotBefore(time.Now().Add(reclaimEvery)) // what is kept of each takes room
	s.inst.NoteRewritten()
}

// roomToRewrite returns why there is no room for a rewrite: what was there stays.
func (e *Engine) roomToRewrite(s *smallStores) error {
	return e.space.RoomFor(s.inst.FileSize() + diskspace.Kept)
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
	r := small.Rewrite{FS: e.o.FS, Dir: s.inst.Dir, Aside: e.path(OrphanedDir, SmallDir+"."), Table: s.inst.WriterOptions(small.Kind()), Err: s.Err, Certain: e.small.Failed.Load() >= 5}
	if e.o.RowTables {
		r.Table.TableFormat = sstable.TableFormatPebblev4 // as tables of attachments
	}
	if r.Empty, err = e.emptyDB(); err != nil {
		return err
	}
	begun := e.small.Begun.Add(1)
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
