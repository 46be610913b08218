package storage

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/small"
)

// reclaimSlice is how much is compacted at once, in bytes, about.
const reclaimSlice = 16 << 20

// runReclaim has what small stores had that were removed, or compacted, leave the disk when it is time. By itself
// Pebble compacts a table when much of it is deleted.
func (e *Engine) runReclaim(ctx context.Context) {
	e.small.reclaim.Start()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if spans := e.small.reclaim.DueCompacted(); len(spans) > 0 && !e.compactSmall(ctx, spans) {
			e.small.reclaim.Removed(false)
		}
		if due, urgent := e.small.reclaim.DueRemoved(e.space.Full()); due && !e.reclaimSmall(ctx, urgent) {
			e.small.reclaim.Removed(urgent)
		}
	}
}

// reclaimSmall gives back the room of what was removed, when urgent that of the logs as well. It reports false when
// it is to be called again.
func (e *Engine) reclaimSmall(ctx context.Context, urgent bool) bool {
	var size int64
	if err := e.withSmall(func(db *pebble.DB) error { size = int64(db.Metrics().DiskSpaceUsage()); return nil }); err != nil {
		return fault.Is(err, fault.NoCopy)
	}
	if !e.compactSmall(ctx, small.Slices(int(min(1+size/reclaimSlice, 1<<12)))) {
		return false
	}
	if urgent {
		if err := e.dropSmallLogs(); err != nil {
			e.log.Warn("logs of small shards could not be given back", zap.Error(err))
		}
	}
	return true
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
