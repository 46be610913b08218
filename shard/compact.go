package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// Compactions is the compactions of copies of this node that run.
type Compactions struct {
	states *copyStates

	mu      sync.Mutex
	running map[string]*compaction // by copy
}

// Start starts the compaction of a copy in the background: contents of inner
// revisions and attachments that nothing refers to are dropped, the log of
// purges is cut to limits.PurgedInfos entries, except that entries that a
// follower still has to read stay (PurgeCheckpoint). db is only named in
// Running. While one is running for the copy a second call changes nothing. It
// ends when the Local is closed or the copy dropped, at any point, and what it
// has done stays done.
func (c *Compactions) Start(ctx context.Context, name string, limits Limits, db string) error {
	store, err := c.states.pin(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &compaction{db: db, started: time.Now(), cancel: cancel, ended: make(chan struct{})}
	one.updated.Store(one.started.UnixMilli())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[name] != nil {
		cancel()
		c.states.engine.Release(store)
		return nil
	}
	begun := c.states.spawn(func() {
		defer cancel()
		defer close(one.ended)
		err := c.run(ctx, name, store, limits, one.progress)
		c.states.engine.Release(store)
		c.mu.Lock()
		delete(c.running, name)
		c.mu.Unlock()
		if err != nil && !errors.Is(err, context.Canceled) && !fault.Is(err, fault.Closed) {
			c.states.log.Error("compaction failed", zap.String("copy", name), zap.Error(err))
		}
	})
	if !begun {
		cancel()
		c.states.engine.Release(store)
		return errClosed()
	}
	c.running[name] = one
	return nil
}

func (c *Compactions) run(ctx context.Context, name string, store *storage.Store, limits Limits, progress func(done, total uint64)) error {
	limit := limits.PurgedInfos
	if limit <= 0 {
		limit = DefaultPurgedInfosLimit
	}
	err := store.Compact(ctx, storage.CompactOptions{
		Write: func(ctx context.Context, fn func(b *storage.Batch) error) error {
			return c.states.write(ctx, store, fn)
		},
		PurgesToTrim: func() (uint64, error) { return purgesToTrim(store, uint64(limit)) },
		Progress:     progress,
	})
	if err != nil {
		return fmt.Errorf("compact %s: %w", name, err)
	}
	return nil
}

// Running lists the compactions that run, ordered by copy.
func (c *Compactions) Running() []Compaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Compaction, 0, len(c.running))
	for name, one := range c.running {
		out = append(out, Compaction{
			Copy: name, DB: one.db, StartedMS: one.started.UnixMilli(), UpdatedMS: one.updated.Load(),
			Done: one.done.Load(), Total: one.total.Load(),
		})
	}
	slices.SortFunc(out, func(a, b Compaction) int { return strings.Compare(a.Copy, b.Copy) })
	return out
}

func (c *Compactions) isRunning(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[name] != nil
}

// stop ends the compaction of a copy and waits until it has.
func (c *Compactions) stop(name string) {
	c.mu.Lock()
	one := c.running[name]
	c.mu.Unlock()
	if one != nil {
		one.cancel()
		<-one.ended
	}
}

// stopAll ends all compactions, without waiting for them.
func (c *Compactions) stopAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.running {
		one.cancel()
	}
}
