package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/uploads"
)

// Engine is all stores of a node: it makes, opens and drops those of shard copies, and owns the parts that
// all stores share. It is safe for concurrent use.
//
// Its parts have a duty and a state each, and the invariants that belong to it: storeCache which stores
// are open (E2, E3), Catalog which are on the disk (E1), Losses which should be, smallHost
// the instance that has the small ones, staging those that are dropped, Indexes what is derived
// of copies, environment what they all work with.
//
// LOCKS The mutexes of the parts are leaves: none is taken under another one, but those of the
// memory budget, of an instance's memtables and of the scheduler of compactions under
// storeCache.mu. Nothing is opened, closed, synced or waited for under one.
type Engine struct {
	env     environment
	lock    io.Closer
	cache   *storeCache
	small   *smallHost
	staging *staging
	indexes *Indexes
	catalog *Catalog
	losses  *Losses
	uploads uploads.Sets

	orphans struct { // to be set aside when they are dropped, not removed
		sync.Mutex
		names map[string]struct{}
	}
}

// NewEngine locks the data directory and makes what the stores share. It opens
// no store and starts nothing; Close must be called. It fails when another
// process holds the directory, and when it is one that this program cannot serve.
func NewEngine(o Options) (*Engine, error) {
	o = o.withDefaults()
	tree := paths.Tree{Dirs: paths.Dirs{FS: o.FS}, Root: o.Dir}
	if err := tree.Readable(OrphanedDir, shardsDir, indexesDir, SmallDir); err != nil {
		return nil, err
	}
	lock, err := tree.Lock(o.ReadOnly)
	if err != nil {
		return nil, err
	}
	e := newParts(o)
	e.lock = lock
	if !o.ReadOnly {
		if err := e.prepare(); err != nil {
			return nil, errors.Join(err, e.releaseShared())
		}
	}
	if err := e.losses.made.Load(); err != nil {
		return nil, errors.Join(fmt.Errorf("read which stores were made: %w", err), e.releaseShared())
	}
	return e, nil
}

// newParts makes the parts of an engine; none touches the disk.
func newParts(o Options) *Engine {
	e := &Engine{}
	e.orphans.names = map[string]struct{}{}
	env := &e.env
	env.init(o)
	e.cache = newStoreCache(env)
	e.small = &smallHost{env: env, cache: e.cache}
	e.staging = newStaging(env, e.small)
	e.indexes = &Indexes{env: env, cache: e.cache, staging: e.staging}
	contents := newLostContents()
	e.catalog = &Catalog{env: env, cache: e.cache, small: e.small, indexes: e.indexes, lost: contents}
	e.losses = &Losses{env: env, cache: e.cache, catalog: e.catalog, contents: contents}
	e.losses.made.FS, e.losses.made.Path = o.FS, env.path(madeFile)
	return e
}

// prepare makes the directory what the engine works in.
func (e *Engine) prepare() error {
	if err := e.env.dirs.Probe(); err != nil {
		return err
	}
	if err := e.staging.prepare(); err != nil {
		return fmt.Errorf("staging directory: %w", err)
	}
	// A crash came between a copy and its indexes, or the copy was removed by hand.
	if err := e.env.dirs.Orphans(indexesDir, shardsDir, e.staging.add); err != nil {
		return fmt.Errorf("indexes without a store: %w", err)
	}
	return nil
}

// Indexes returns the indexes of the stores.
func (e *Engine) Indexes() *Indexes { return e.indexes }

// Catalog returns what tells which stores are on the disk.
func (e *Engine) Catalog() *Catalog { return e.catalog }

// Losses returns what tells which stores are missing.
func (e *Engine) Losses() *Losses { return e.losses }

// Run closes idle stores, removes what was dropped, looks for space and grants
// compactions; it returns nil when ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	rewriter := &smallRewriter{env: &e.env, cache: e.cache, damage: &e.small.damage}
	rewrite := func(s *smallStores) error { return rewriter.run(ctx, s) }
	e.small.rewrite.Store(&rewrite)
	defer e.small.rewrite.Store(nil)
	reclaimer := &smallReclaimer{host: e.small}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { e.env.shared.Scheduler.Run(ctx) })
	beside.Go(func() { reclaimer.run(ctx) })
	tick, space := time.NewTicker(e.env.o.IdleClose/4), time.NewTicker(time.Second)
	defer tick.Stop()
	defer space.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			_ = e.cache.closeIdle(e.env.o.IdleClose) // logged there
			if e.staging.unswept.Load() {
				e.staging.sweep()
			}
		case <-space.C:
			e.env.space.Watch()
		case <-e.staging.due:
			e.staging.sweep()
		}
	}
}

// Close closes every store and gives the data directory free. Stores in use
// are waited for, 3 seconds at most; the error names one that is still pinned
// then. What was acknowledged is durable either way.
func (e *Engine) Close() error {
	drained, err := e.cache.close()
	if !drained {
		return err
	}
	return errors.Join(err, e.env.empty.Close(), e.releaseShared())
}

func (e *Engine) releaseShared() error {
	e.env.close()
	return errors.Join(e.losses.made.Close(), e.lock.Close())
}

// Acquire opens the store when it is not open, and pins it: it stays open until
// Release. The error is fault.NoCopy when there is no such
// store, fault.Closed after Close, fault.Corruption when it cannot be read.
func (e *Engine) Acquire(name string) (*Store, error) {
	m, err := e.cache.acquire(name, e.openStore)
	if err != nil {
		return nil, err
	}
	return m.(*Store), nil
}

// Release takes back one pin of Acquire. A store that was dropped meanwhile, or
// has failed, is closed with its last pin.
func (e *Engine) Release(s *Store) { e.cache.release(&s.handle) }

// DiskFull is fault.InsufficientStorage while the disk of the data directory is full,
// which this looks up now and then.
func (e *Engine) DiskFull() error { return e.env.space.Err() }

// IndexSpace is fault.InsufficientStorage while there is too little space on the disk
// to update indexes, and nil as soon as there is enough.
func (e *Engine) IndexSpace() error { return e.env.space.IndexErr(0) }

// SmallStoresGivenUp is Store.GivenUp of the instance that has the small stores.
func (e *Engine) SmallStoresGivenUp() (*instance.GivenUp, error) { return e.small.givenUp() }
