package storage

import (
	"bytes"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/sstable"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/small"
)

// What small stores had that were dropped is on the disk until the tables of the shared instance are
// compacted, which Pebble does when much of a table is deleted. All of it goes
// within reclaimEvery, and within reclaimFull while the disk is full.
const (
	reclaimEvery = time.Hour
	reclaimFull  = 10 * time.Second
)

// smallUpkeep is what the instance of the small stores is waiting for.
type smallUpkeep struct {
	damaged   atomic.Bool                              // its compactions met a damaged file
	removed   atomic.Bool                              // of what was removed some may be on the disk still
	reclaimed time.Time                                // when that was given back the last time; Run's
	rewrite   atomic.Pointer[func(*smallStores) error] // of Run; nil before it
}

// reclaimSmall gives back the room of small stores that were removed, when it is time. Run calls it.
func (e *Engine) reclaimSmall(ctx context.Context) {
	wait := reclaimEvery
	if e.space.Full() {
		wait = reclaimFull
	}
	if time.Since(e.small.reclaimed) < wait || !e.small.removed.Swap(false) {
		return
	}
	e.small.reclaimed = time.Now()
	lo, hi := small.All()
	err := e.compactSmall(ctx, lo, hi)
	if err == nil && e.space.Full() {
		err = e.dropSmallLogs()
	}
	if err == nil || fault.Is(err, fault.NoCopy) || ctx.Err() != nil {
		return
	}
	e.small.removed.Store(true)
	e.log.Warn("what small shards had that are deleted takes room still", zap.Error(err))
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

// compactSmall compacts the files of small stores from one key to another.
func (e *Engine) compactSmall(ctx context.Context, lo, hi []byte) error {
	s, err := e.reserveSmall()
	if err != nil {
		return err
	}
	defer e.release(&s.handle)
	return s.inst.Compact(ctx, lo, hi)
}

// rewriteSmall writes what can be read of all small stores into a new table, as their compactions fail at a
// damaged file: each write would fail before long, of any of them. Called before others use the instance.
func (e *Engine) rewriteSmall(ctx context.Context, s *smallStores) error {
	known, err := e.dirs.Stores(shardsDir, "")
	if err != nil {
		return instance.DiskError("list shards", err)
	}
	stores := make([][16]byte, 0, len(known))
	for _, k := range known {
		if k.Small {
			stores = append(stores, k.UUID)
		}
	}
	slices.SortFunc(stores, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	r := small.Rewrite{FS: e.o.FS, Dir: s.inst.Dir, Aside: e.o.FS.PathJoin(e.o.Dir, OrphanedDir, SmallDir+"."), Table: s.inst.WriterOptions(small.Kind())}
	if e.o.RowTables {
		r.Table.TableFormat = sstable.TableFormatPebblev4 // as tables of attachments
	}
	damaged, kept, err := r.Run(ctx, s.inst.DB(), slices.Compact(stores))
	if err != nil {
		return fault.Wrap(fault.Unavailable, "The files of small shards are damaged.", err)
	}
	e.small.damaged.Store(false)
	e.log.Error("files of small shards were damaged, and are written anew without what cannot be read",
		zap.Int("shards", len(stores)), zap.Int("damaged", len(damaged)), zap.String("kept", kept))
	return nil
}
