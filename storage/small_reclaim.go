package storage

import (
	"context"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/small"
)

const (
	reclaimSlice  = 16 << 20         // bytes that are compacted at once, about
	reclaimWithin = 10 * time.Minute // in which that is done, or not now: damaged files hold compactions up
)

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
		e.tendSmall()
		if spans := e.small.reclaim.TakeCompacted(); len(spans) > 0 {
			e.small.reclaim.EndCompacted(e.compactSmall(ctx, spans))
		}
		if due, urgent := e.small.reclaim.TakeRemoved(e.space.Full()); due {
			e.small.reclaim.EndRemoved(e.reclaimSmall(ctx, urgent), urgent)
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
		err = s.compact(ctx, spans[i])
		e.noteDamage(s)
	}
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NoCopy) && !errors.Is(err, errSmallEnds) {
		e.log.Warn("what small shards had that are deleted or compacted takes room still", zap.Error(err))
	}
	return err == nil
}

// compact compacts a range of keys. It ends early when the instance is to be closed: its pin would hold that up.
func (s *smallStores) compact(ctx context.Context, span pebble.KeyRange) error {
	ctx, cancel := context.WithTimeout(ctx, reclaimWithin)
	defer cancel()
	err := s.inst.Compact(ctx, s.ending, span.Start, span.End)
	if s.ends.Load() {
		return errSmallEnds
	}
	return err
}
