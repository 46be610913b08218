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

	"divan/storage/fault"
)

// Engine is all stores of a node: it opens them on demand, closes those that
// nobody uses, and holds what they share. It is safe for concurrent use.
//
// Invariants:
//
//	E1  a directory is a store when it holds the file that names it, which is
//	    there or not; a store that is dropped leaves its place whole.
//	E2  a store is open at most once: its entry is busy from before it is
//	    opened until after it is closed, and whoever meets a busy entry waits.
//	E3  a store with pins is never closed.
//
// LOCKS mu is a leaf: nothing is opened, closed, synced or waited for under it.
type Engine struct {
	o         Options
	log       *zap.Logger
	memory    *memory
	files     *pebble.FileCache
	scheduler *scheduler
	lock      io.Closer
	dirs      dirs
	sweep     chan struct{} // something lies in the staging folder
	drained   chan struct{} // closed, and no entry left
	syncing   atomic.Int32  // stores with a batch on its way to the disk

	empty struct {
		sync.Mutex
		db *pebble.DB // what a store without a write reads from; nil until needed
	}

	mu struct {
		sync.Mutex
		closed  bool
		entries map[string]*entry
		unused  list.List // entries without pins, the longest unused in front
		open    int       // entries that hold a Pebble instance
		retry   map[string]time.Time
	}
	uploads uploadSets
	marks   marks
}

// entry is one store that is open, or being opened or closed.
type entry struct {
	name    string
	store   *Store
	busy    chan struct{} // not nil while opened or closed; closed at the end
	pins    int
	dropped bool // remove the directory when closed
	unused  *list.Element
	since   time.Time // of becoming unused
}

// maxFiles is how many sstable files stay open on the node.
const maxFiles = 2000

// NewEngine locks the data directory and makes what the stores share. It opens
// no store and starts nothing; Close must be called. It fails when another
// process holds the directory.
func NewEngine(o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := o.FS.Lock(o.FS.PathJoin(o.Dir, "LOCK"))
	if err != nil {
		return nil, fmt.Errorf("data directory %s is in use: %w", o.Dir, err)
	}
	e := &Engine{
		o: o, log: o.Logger, lock: lock,
		memory:    newMemory(o.CacheBytes, o.MaxOpen),
		files:     pebble.NewFileCache(compactionSlots(), maxFiles),
		scheduler: newScheduler(compactionSlots()),
		dirs:      dirs{fs: o.FS},
		sweep:     make(chan struct{}, 1),
		drained:   make(chan struct{}),
	}
	e.mu.entries = map[string]*entry{}
	e.mu.retry = map[string]time.Time{}
	if err := e.prepareStaging(); err != nil {
		return nil, errors.Join(fmt.Errorf("staging directory: %w", err), e.releaseShared())
	}
	if err := e.loadMarks(); err != nil {
		return nil, errors.Join(fmt.Errorf("read marks of stores: %w", err), e.releaseShared())
	}
	return e, nil
}

// Run closes idle stores, removes what was dropped and grants compactions; it
// returns nil when ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	var granting sync.WaitGroup
	defer granting.Wait()
	granting.Go(func() { e.scheduler.run(ctx) })
	tick := time.NewTicker(e.o.IdleClose / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			e.closeIdle()
		case <-e.sweep:
			e.sweepStaged()
		}
	}
}

// closeWait is how long Close waits for the users of pinned stores.
const closeWait = 10 * time.Second

// Close closes every store and gives the data directory free. Stores in use
// are waited for, 10 seconds at most; the error names one that is still pinned
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
	return errors.Join(err, e.closeEmpty(), e.releaseShared())
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
	e.files.Unref()
	e.memory.close()
	return e.lock.Close()
}

// Acquire opens the store when it is not open, and pins it: it stays open until
// Release. The error is fault.NoCopy when there is no such
// store, fault.Closed after Close, fault.Corruption when it cannot be read.
func (e *Engine) Acquire(name string) (*Store, error) {
	for {
		e.mu.Lock()
		if e.mu.closed {
			e.mu.Unlock()
			return nil, errClosed()
		}
		en := e.mu.entries[name]
		switch {
		case en == nil:
			en = e.newBusyLocked(name)
			e.mu.Unlock()
			return e.open(en)
		case en.busy != nil:
			wait := en.busy
			e.mu.Unlock()
			<-wait
		case en.dropped:
			e.mu.Unlock()
			return nil, noStore()
		default:
			e.pinLocked(en)
			e.mu.Unlock()
			return en.store, nil
		}
	}
}

func noStore() error { return fault.New(fault.NoCopy, "no_db_file") }

// newBusyLocked enters a store that the caller is going to open or change on
// disk; endBusyLocked must follow.
func (e *Engine) newBusyLocked(name string) *entry {
	en := &entry{name: name, busy: make(chan struct{})}
	e.mu.entries[name] = en
	return en
}

func (e *Engine) endBusyLocked(en *entry) {
	close(en.busy)
	en.busy = nil
}

// removeLocked forgets a busy entry.
func (e *Engine) removeLocked(en *entry) {
	delete(e.mu.entries, en.name)
	e.endBusyLocked(en)
	e.drainedLocked()
}

func (e *Engine) pinLocked(en *entry) {
	if en.unused != nil {
		e.mu.unused.Remove(en.unused)
		en.unused = nil
	}
	en.pins++
}

// retryAfter is how long a store that stopped stays closed before it is opened
// again: a disk that is full or failing gets time to recover.
const retryAfter = 2 * time.Second

// open opens the store of a busy entry with one pin.
func (e *Engine) open(en *entry) (*Store, error) {
	e.mu.Lock()
	wait := time.Until(e.mu.retry[en.name])
	e.mu.Unlock()
	var s *Store
	err := error(fault.New(fault.Unavailable, "The shard has stopped after a failure of its disk."))
	if wait <= 0 {
		s, err = e.openStore(en.name)
	}
	e.mu.Lock()
	if err != nil {
		if wait <= 0 && (fault.Is(err, fault.InsufficientStorage) || fault.Is(err, fault.Unavailable)) {
			e.mu.retry[en.name] = time.Now().Add(retryAfter)
		}
		e.removeLocked(en)
		e.mu.Unlock()
		return nil, err
	}
	delete(e.mu.retry, en.name)
	en.store, s.entry, en.pins = s, en, 1
	e.endBusyLocked(en)
	e.mu.Unlock()
	return s, nil
}

// Release takes back one pin of Acquire. A store that was dropped meanwhile, or
// has failed, is closed with its last pin.
func (e *Engine) Release(s *Store) {
	e.mu.Lock()
	en := s.entry
	en.pins--
	if en.pins > 0 {
		e.mu.Unlock()
		return
	}
	if en.dropped || e.mu.closed || s.Err() != nil || !s.opened() {
		en.busy = make(chan struct{})
		e.mu.Unlock()
		_ = e.closeStores([]*entry{en}) // logged there
		return
	}
	en.since = time.Now()
	en.unused = e.mu.unused.PushBack(en)
	excess := e.mu.open > e.o.MaxOpen
	e.mu.Unlock()
	if excess {
		e.shrink()
	}
}

// pin adds a pin for something that outlives the caller's own: a snapshot, a
// reader. The caller holds one.
func (e *Engine) pin(s *Store) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.entry.pins++
}

// shrink closes the longest unused stores while too many are open.
func (e *Engine) shrink() {
	e.mu.Lock()
	excess := e.mu.open - e.o.MaxOpen
	var victims []*entry
	for el := e.mu.unused.Front(); el != nil && excess > 0; {
		en := el.Value.(*entry)
		el = el.Next()
		// Closing waits for a running compaction; another store will do.
		if en.store.slots.busy() {
			continue
		}
		victims = append(victims, e.takeLocked(en))
		excess--
	}
	e.mu.Unlock()
	_ = e.closeStores(victims) // logged there
}

func (e *Engine) closeIdle() {
	_ = e.closeStores(e.takeUnused(e.o.IdleClose)) // logged there
}

// takeUnused takes the stores that were unused for so long, to be closed.
func (e *Engine) takeUnused(idle time.Duration) []*entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []*entry
	for el := e.mu.unused.Front(); el != nil; {
		en := el.Value.(*entry)
		el = el.Next()
		if time.Since(en.since) < idle {
			break
		}
		out = append(out, e.takeLocked(en))
	}
	return out
}

// takeLocked makes an unused entry busy.
func (e *Engine) takeLocked(en *entry) *entry {
	e.mu.unused.Remove(en.unused)
	en.unused = nil
	en.busy = make(chan struct{})
	return en
}

// closeStores closes busy entries and forgets them. The error is for Close;
// everybody else finds it in the log.
func (e *Engine) closeStores(entries []*entry) error {
	var errs []error
	for _, en := range entries {
		if err := e.closeStore(en); err != nil {
			e.log.Error("closing a store failed", zap.String("store", en.name), zap.Error(err))
			errs = append(errs, fmt.Errorf("close store %s: %w", en.name, err))
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) closeStore(en *entry) error {
	s := en.store
	err := s.close()
	if en.dropped {
		err = errors.Join(err, e.stage(en.name))
	}
	failed := s.Err() != nil
	if failed {
		err = nil // the failure itself is in the log already
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.counted {
		s.counted = false
		e.mu.open--
	}
	if failed {
		e.mu.retry[en.name] = time.Now().Add(retryAfter)
	}
	e.removeLocked(en)
	return err
}

// countOpen notes that a store holds a Pebble instance from now on.
func (e *Engine) countOpen(s *Store) {
	e.mu.Lock()
	e.mu.open++
	s.counted = true
	excess := e.mu.open > e.o.MaxOpen
	e.mu.Unlock()
	if excess {
		e.shrink()
	}
}

func errClosed() error { return fault.New(fault.Closed, "The node is shutting down.") }

// syncInterval is how long a log waits between two syncs. With one busy store
// the disk is the limit and waiting only costs; with many, each syncs for
// itself and a short wait gathers more edits per sync.
func (e *Engine) syncInterval() time.Duration {
	if e.syncing.Load() >= manyStores {
		return groupInterval
	}
	return 0
}

// manyStores is the number of stores with a batch on its way to the disk from
// which on logs wait for each other.
const manyStores = 3

// Stats are figures about an engine, for metrics.
type Stats struct {
	OpenStores             int   // with a Pebble instance
	PinnedStores           int   // in use
	Compactions            int   // running
	CacheBytes             int64 // blocks in the cache
	CacheHits, CacheMisses int64 // since the start
}

// Stats returns the figures of the moment.
func (e *Engine) Stats() Stats {
	m := e.memory.cache.Metrics()
	s := Stats{CacheBytes: m.Size, CacheHits: m.Hits, CacheMisses: m.Misses}
	e.scheduler.mu.Lock()
	s.Compactions = e.scheduler.mu.running
	e.scheduler.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	s.OpenStores = e.mu.open
	for _, en := range e.mu.entries {
		if en.pins > 0 {
			s.PinnedStores++
		}
	}
	return s
}
