package storage

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/marks"
	"divan/storage/paths"
	"divan/storage/scheduler"
	"divan/storage/small"
	"divan/storage/uploads"
)

// Engine is all stores of a node: it opens them on demand, closes stores that
// are not in use, and holds what they share. It is safe for concurrent use.
//
// Invariants:
//
//	E1  a directory is a store when it holds the file that names it, which is
//	    there or not; a store that is dropped leaves its place whole.
//	E2  a store is open at most once: its entry is busy from before it is
//	    opened until after it is closed, and a goroutine that meets a busy
//	    entry waits.
//	E3  a store with pins is never closed.
//
// LOCKS mu is a leaf: nothing is opened, closed, synced or waited for under it.
type Engine struct {
	o       Options
	log     *zap.Logger
	shared  instance.Shared
	lock    io.Closer
	dirs    paths.Tree
	sweep   chan struct{} // something lies in the staging folder
	unswept atomic.Bool   // and stays there: it could not be removed
	drained chan struct{} // closed, and no entry left
	syncing atomic.Int32  // stores with a batch on its way to the disk
	waiting atomic.Int64  // requests that wait for these batches
	commits atomic.Uint64 // batches whose way has ended

	small struct { // of the instance that has the small stores
		damage  small.Damage
		reclaim small.Reclaim
		forced  atomic.Int32                             // callers that have it opened for writing although the disk is full
		mend    atomic.Pointer[func(*smallStores) error] // of Run, nil before and after it
		broken  atomic.Pointer[fault.Error]              // why it cannot be opened for good
	}
	versions atomic.Uint64 // given to contents of indexes

	empty instance.Empty // what a store without a write reads from

	mu struct {
		sync.Mutex
		closed  bool
		entries map[string]*entry
		unused  list.List // entries without pins, the longest unused in front
		open    int       // entries that hold a Pebble instance
		// the same of small stores, and what they weigh
		unusedSmall list.List
		openSmall   int
		smallBytes  int64
		shrunk      time.Time // when memtables were too large the last time
		retry       map[string]time.Time
		// stores that are not opened for reading before they were opened for writing
		unsynced map[string]struct{}
		orphans  map[string]struct{} // to be set aside, not removed
	}
	space    diskspace.Space
	uploads  uploads.Sets
	made     marks.Made
	contents *lostContents
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
	e := &Engine{
		o: o, log: o.Logger, lock: lock,
		shared: instance.Shared{
			FS: o.FS, Memory: instance.NewMemoryBudget(o.CacheBytes, o.MaxOpen),
			Files:     pebble.NewFileCache(compactionSlots(), o.MaxTables),
			Scheduler: scheduler.New(compactionSlots()),
		},
		dirs:    paths.Tree{Dirs: paths.Dirs{FS: o.FS}, Root: o.Dir},
		sweep:   make(chan struct{}, 1),
		drained: make(chan struct{}), contents: newLostContents(),
	}
	e.shared.SyncInterval, e.shared.Compression = e.syncInterval, o.Compression
	e.space.FS, e.space.Dir, e.space.Log, e.space.Hold = o.FS, o.Dir, o.Logger, e.shared.Scheduler.HoldDerived
	e.shared.TableRoom, e.shared.Pending = e.space.TableRoom, e.space.Pending
	e.mu.entries = map[string]*entry{}
	e.mu.retry, e.mu.unsynced, e.mu.orphans = map[string]time.Time{}, map[string]struct{}{}, map[string]struct{}{}
	e.made.FS, e.made.Path = o.FS, e.path(madeFile)
	if !o.ReadOnly {
		if err := e.prepare(); err != nil {
			return nil, errors.Join(err, e.releaseShared())
		}
	}
	if err := e.made.Load(); err != nil {
		return nil, errors.Join(fmt.Errorf("read which stores were made: %w", err), e.releaseShared())
	}
	return e, nil
}

// prepare makes the directory what the engine works in.
func (e *Engine) prepare() error {
	if err := e.dirs.Probe(); err != nil {
		return err
	}
	if err := e.prepareStaging(); err != nil {
		return fmt.Errorf("staging directory: %w", err)
	}
	// A crash came between a copy and its indexes, or the copy was removed by hand.
	if err := e.dirs.Orphans(indexesDir, shardsDir, e.stage); err != nil {
		return fmt.Errorf("indexes without a store: %w", err)
	}
	return nil
}

// Run closes idle stores, removes what was dropped, looks for room and grants
// compactions; it returns nil when ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	rewrite := func(s *smallStores) error { return e.rewriteSmall(ctx, s) }
	e.small.mend.Store(&rewrite)
	defer e.small.mend.Store(nil)
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { e.shared.Scheduler.Run(ctx) })
	beside.Go(func() { e.runReclaim(ctx) })
	tick, space := time.NewTicker(e.o.IdleClose/4), time.NewTicker(time.Second)
	defer tick.Stop()
	defer space.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			e.closeIdle()
			if e.unswept.Load() {
				e.sweepStaged()
			}
		case <-space.C:
			e.space.Watch()
		case <-e.sweep:
			e.sweepStaged()
		}
	}
}

// closeWait is how long Close waits for the users of pinned stores.
const closeWait = 3 * time.Second

// Close closes every store and gives the data directory free. Stores in use
// are waited for, 3 seconds at most; the error names one that is still pinned
// then. What was acknowledged is durable either way.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return nil
	}
	e.mu.closed = true
	e.drainedLocked()
	e.mu.Unlock()
	err := e.closeStores(e.takeUnused(0))
	deadline := time.NewTimer(closeWait)
	defer deadline.Stop()
	select {
	case <-e.drained:
	case <-deadline.C:
		return errors.Join(err, e.stillOpen())
	}
	return errors.Join(err, e.empty.Close(), e.releaseShared())
}

// drainedLocked announces that a closed engine has no entry left.
func (e *Engine) drainedLocked() {
	if e.mu.closed && len(e.mu.entries) == 0 {
		close(e.drained)
	}
}

func (e *Engine) stillOpen() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.mu.entries {
		return fmt.Errorf("%d stores are still in use, one is %s", len(e.mu.entries), name)
	}
	return nil
}

func (e *Engine) releaseShared() error {
	e.shared.Files.Unref()
	e.shared.Memory.Close()
	return errors.Join(e.made.Close(), e.lock.Close())
}

func errClosed() error { return fault.New(fault.Closed, "The node is shutting down.") }

// Stats are figures about an engine, for metrics.
type Stats struct {
	OpenStores             int    // with a Pebble instance, or the view of a small one
	OpenSmall              int    // of these with a view
	SmallBytes             int64  // that the views take, about
	SmallDamaged           bool   // files of small stores are damaged, and not yet written anew
	PinnedStores           int    // in use
	Compactions            int    // running
	CacheBytes             int64  // blocks in the cache
	MemtableBytes          int64  // that memtables of open stores take at most
	CacheHits, CacheMisses int64  // since the start
	DiskFree, DiskSize     uint64 // bytes of the disk of the data directory; 0: it does not tell
	BitsCorrected          int64  // bits of files that were other ones than their checksums say, and were set right
	Commits                uint64 // batches whose way to the disk has ended, since the start
}

// Stats returns the figures of the moment.
func (e *Engine) Stats() Stats {
	m := e.shared.Memory.Cache.Metrics()
	s := Stats{CacheBytes: m.Size, CacheHits: m.Hits, CacheMisses: m.Misses}
	s.Commits, s.BitsCorrected = e.commits.Load(), e.shared.Mending.Corrected()
	s.DiskFree, s.DiskSize = e.space.Usage()
	s.Compactions, s.MemtableBytes = e.shared.Scheduler.Running(), e.shared.Memory.Memtables()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.OpenStores, s.OpenSmall = e.mu.open+e.mu.openSmall, e.mu.openSmall
	s.SmallBytes, s.SmallDamaged = e.mu.smallBytes, e.small.damage.Met()
	for _, en := range e.mu.entries {
		if en.pins > 0 {
			s.PinnedStores++
		}
	}
	return s
}

// DiskFull is fault.InsufficientStorage while the disk of the data directory is full,
// which this looks up now and then.
func (e *Engine) DiskFull() error { return e.space.Err() }

// IndexRoom is fault.InsufficientStorage while there is too little room on the disk
// to update indexes, and nil as soon as there is enough.
func (e *Engine) IndexRoom() error { return e.space.IndexErr(0) }
