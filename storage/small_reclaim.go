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

// smallReclaimer gives back the space that the instance of the small stores takes for what no store
// has any more.
type smallReclaimer struct{ host *smallHost }

// run has what small stores had that were removed, or compacted, leave the disk when it is time. By itself
// Pebble compacts a table when much of it is deleted.
func (r *smallReclaimer) run(ctx context.Context) {
	r.host.reclaim.Start()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		r.host.tend()
		if spans := r.host.reclaim.TakeCompacted(); len(spans) > 0 {
			r.host.reclaim.EndCompacted(r.compact(ctx, spans))
		}
		if due, urgent := r.host.reclaim.TakeRemoved(r.host.env.space.Full()); due {
			r.host.reclaim.EndRemoved(r.reclaim(ctx, urgent), urgent)
		}
	}
}

// reclaim gives back the space of what was removed, when urgent that of the logs as well. It reports false when
// it is to be called again.
func (r *smallReclaimer) reclaim(ctx context.Context, urgent bool) bool {
	var size int64
	if err := r.host.with(func(db *pebble.DB) error { size = int64(db.Metrics().DiskSpaceUsage()); return nil }); err != nil {
		return fault.Is(err, fault.NoCopy)
	}
	if !r.compact(ctx, small.Slices(int(min(1+size/reclaimSlice, 1<<12)))) {
		return false
	}
	if urgent {
		if err := r.dropLogs(); err != nil {
			r.host.env.log.Warn("logs of small shards could not be given back", zap.Error(err))
		}
	}
	return true
}

// dropLogs removes logs that are kept to be written over, which opening the instance does.
func (r *smallReclaimer) dropLogs() error {
	if err := r.host.cache.closeUnused(SmallDir); err != nil {
		return err
	}
	s, err := r.host.reserve()
	if err == nil {
		r.host.cache.release(&s.handle)
	}
	return err
}

// compact compacts ranges of keys of small stores, one after the other, and reports whether all were.
func (r *smallReclaimer) compact(ctx context.Context, spans []pebble.KeyRange) bool {
	s, err := r.host.reserve()
	if err == nil {
		defer r.host.cache.release(&s.handle)
	}
	for i := 0; err == nil && i < len(spans); i++ {
		err = s.compact(ctx, spans[i])
		r.host.noteDamage(s)
	}
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.NoCopy) && !errors.Is(err, errSmallEnds) {
		r.host.env.log.Warn("what small shards had that are deleted or compacted takes space still", zap.Error(err))
	}
	return err == nil
}
