package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/storage"
	"divan/storage/fault"
)

// compaction is one that runs.
type compaction struct {
	db      string
	started time.Time
	cancel  context.CancelFunc
	ended   chan struct{}

	updated     atomic.Int64 // unix milliseconds
	done, total atomic.Uint64
}

func (c *compaction) progress(done, total uint64) {
	c.done.Store(done)
	c.total.Store(total)
	c.updated.Store(time.Now().UnixMilli())
}

// Compact starts the compaction of a copy in the background: contents of inner
// revisions and attachments that nothing refers to are dropped, the log of
// purges is cut to limits.PurgedInfos entries, except that what somebody still
// has to read stays (PurgeCheckpoint). db is only named in Compactions.
// While one is running for the copy a second call changes nothing. It ends
// when the Local is closed or the copy dropped, at any point, and what it has
// done stays done.
func (l *Local) Compact(ctx context.Context, name string, limits Limits, db string) error {
	store, err := l.pin(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &compaction{db: db, started: time.Now(), cancel: cancel, ended: make(chan struct{})}
	c.updated.Store(c.started.UnixMilli())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.compactions[name] != nil {
		cancel()
		l.engine.Release(store)
		if l.closed {
			return errClosed()
		}
		return nil
	}
	l.compactions[name] = c
	l.wg.Go(func() {
		defer cancel()
		defer close(c.ended)
		err := l.compact(ctx, name, store, limits, c.progress)
		l.engine.Release(store)
		l.mu.Lock()
		delete(l.compactions, name)
		l.mu.Unlock()
		if err != nil && !errors.Is(err, context.Canceled) && !fault.Is(err, fault.Closed) {
			l.log.Error("compaction failed", zap.String("copy", name), zap.Error(err))
		}
	})
	return nil
}

func (l *Local) compact(ctx context.Context, name string, store *storage.Store, limits Limits, progress func(done, total uint64)) error {
	limit := limits.PurgedInfos
	if limit <= 0 {
		limit = DefaultPurgedInfosLimit
	}
	err := store.Compact(ctx, storage.CompactOptions{
		Write: func(ctx context.Context, fn func(b *storage.Batch) error) error {
			return l.write(ctx, name, fn)
		},
		PurgesToTrim: func() (uint64, error) { return purgesToTrim(store, uint64(limit)) },
		Progress:     progress,
	})
	if err != nil {
		return fmt.Errorf("compact %s: %w", name, err)
	}
	return nil
}

// Compactions lists the compactions that run, ordered by copy.
func (l *Local) Compactions() []Compaction {
	l.mu.RLock()
	defer l.mu.RUnlock()
	out := make([]Compaction, 0, len(l.compactions))
	for name, c := range l.compactions {
		out = append(out, Compaction{
			Copy: name, DB: c.db, StartedMS: c.started.UnixMilli(), UpdatedMS: c.updated.Load(),
			Done: c.done.Load(), Total: c.total.Load(),
		})
	}
	slices.SortFunc(out, func(a, b Compaction) int { return strings.Compare(a.Copy, b.Copy) })
	return out
}

func (l *Local) compacting(name string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.compactions[name] != nil
}

// stopCompaction ends the compaction of a copy and waits until it has.
func (l *Local) stopCompaction(name string) {
	l.mu.RLock()
	c := l.compactions[name]
	l.mu.RUnlock()
	if c != nil {
		c.cancel()
		<-c.ended
	}
}
