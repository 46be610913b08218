package storage

import (
	"container/list"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/instance"
)

// handle is the engine's state of an open store or index.
type handle struct {
	engine  *Engine
	entry   *entry // guarded by engine.mu
	counted bool   // in engine.mu.open, or the weight in engine.mu.smallBytes; guarded by engine.mu
	weight  int64  // about the bytes in memory of one that is small, 0: it has an instance; guarded by engine.mu
	name    string
	inst    *instance.Instance
	log     *zap.Logger
}

// newHandle makes the handle of a store with an instance that is not open, and is to be opened for reading or not.
func (e *Engine) newHandle(name string, readOnly bool) handle {
	log := e.log.With(zap.String("store", name))
	return handle{engine: e, name: name, log: log, inst: e.shared.New(e.path(name), log, readOnly)}
}

// readsOnly reports whether a store is to be opened for reading: the disk is full.
// One whose log could not be synced has to be flushed first.
func (e *Engine) readsOnly(name string) bool {
	if e.o.ReadOnly {
		return true
	}
	if e.space.Err() == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, unsynced := e.mu.unsynced[name]
	return !unsynced
}

func (h *handle) base() *handle { return h }

// Name returns the name of the store, its path below the data directory.
func (h *handle) Name() string { return h.name }

// Err returns why the store has stopped, nil while it works. The error is
// fault.Unavailable, or fault.InsufficientStorage when the disk is full.
func (h *handle) Err() error { return h.inst.Err() }

// FileSize returns the bytes that the store keeps: instance.Instance.FileSize.
func (h *handle) FileSize() (int64, error) { return h.inst.FileSize(), h.Err() }

// member is a store of any kind.
type member interface {
	base() *handle
	close(dropped bool) error
	remove() error // takes the files of a closed store out of their place
}

// entry is one store that is open, or being opened or closed.
type entry struct {
	name    string
	store   member
	busy    chan struct{} // not nil while opened or closed; closed at the end
	pins    int
	dropped bool // remove the directory when closed
	unused  *list.Element
	in      *list.List // that has unused
	since   time.Time  // of becoming unused
}

// Acquire opens the store when it is not open, and pins it: it stays open until
// Release. The error is fault.NoCopy when there is no such
// store, fault.Closed after Close, fault.Corruption when it cannot be read.
func (e *Engine) Acquire(name string) (*Store, error) {
	m, err := e.acquire(name, e.openStore)
	if err != nil {
		return nil, err
	}
	return m.(*Store), nil
}

// acquire opens a store when it is not open, and pins it.
func (e *Engine) acquire(name string, open func(name string) (member, error)) (member, error) {
	for {
		room := !e.o.ReadOnly && (!e.space.Full() || e.space.Err() == nil)
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
			return e.open(en, open)
		case en.busy != nil:
			wait := en.busy
			e.mu.Unlock()
			<-wait
		case en.dropped:
			e.mu.Unlock()
			return nil, noStore()
		case en.pins == 0 && room && en.store.base().inst.ReadOnly():
			e.takeLocked(en)
			e.mu.Unlock()
			_ = e.closeStores([]*entry{en}) // logged there
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
		en.in.Remove(en.unused)
		en.unused = nil
	}
	en.pins++
}

// retryAfter is how long a store that stopped stays closed before it is opened
// again: a disk that is full or failing gets time to recover.
const retryAfter = 2 * time.Second

// open opens the store of a busy entry with one pin.
func (e *Engine) open(en *entry, open func(name string) (member, error)) (member, error) {
	e.mu.Lock()
	wait := time.Until(e.mu.retry[en.name])
	e.mu.Unlock()
	var s member
	err := error(fault.New(fault.Unavailable, "The shard has stopped after a failure of its disk."))
	if wait <= 0 {
		s, err = open(en.name)
	} else if broken := e.small.broken.Load(); broken != nil && en.name == SmallDir {
		err = broken
	}
	if fault.Is(err, fault.InsufficientStorage) {
		e.space.NoteFull()
		if e.readsOnly(en.name) {
			s, err = open(en.name)
		}
	}
	e.mu.Lock()
	if err != nil {
		damaged := wait <= 0 && en.name == SmallDir && fault.Is(err, fault.Corruption) && !e.o.ReadOnly // each small store asks again
		if damaged || wait <= 0 && !errors.Is(err, ErrLost) && !errors.Is(err, errNotMade) && (fault.Is(err, fault.InsufficientStorage) || fault.Is(err, fault.Unavailable)) {
			if e.mu.retry[en.name] = time.Now().Add(retryAfter); damaged {
				e.small.broken.Store(fault.Wrap(fault.Corruption, fault.Reason(err), err))
			}
		}
		e.removeLocked(en)
		e.mu.Unlock()
		return nil, err
	}
	delete(e.mu.retry, en.name)
	delete(e.mu.unsynced, en.name)
	en.store, s.base().entry, en.pins = s, en, 1
	e.endBusyLocked(en)
	e.mu.Unlock()
	return s, nil
}

// Release takes back one pin of Acquire. A store that was dropped meanwhile, or
// has failed, is closed with its last pin.
func (e *Engine) Release(s *Store) { e.release(&s.handle) }

func (e *Engine) release(s *handle) {
	e.mu.Lock()
	en := s.entry
	en.pins--
	if en.pins > 0 {
		e.mu.Unlock()
		return
	}
	if en.dropped || e.mu.closed || s.Err() != nil || !s.counted {
		en.busy = make(chan struct{})
		e.mu.Unlock()
		_ = e.closeStores([]*entry{en}) // logged there
		return
	}
	en.since = time.Now()
	en.in = &e.mu.unused
	if s.weight > 0 {
		en.in = &e.mu.unusedSmall
	}
	en.unused = en.in.PushBack(en)
	excess := e.tooManyLocked() || e.overMemoryLocked()
	e.mu.Unlock()
	if excess {
		e.shrink()
	}
}

// tooManyLocked reports whether more stay open than may: those with an instance are counted, as each has
// files and memtables, and small ones are weighed.
func (e *Engine) tooManyLocked() bool {
	return e.mu.open > e.o.MaxOpen || e.mu.smallBytes > maxSmallOpen
}

// memoryPause is how long the memtables of all stores may be too large until unused
// stores are looked for once more.
const memoryPause = 100 * time.Millisecond

// overMemoryLocked reports whether the memtables of all stores are too large, seldom
// enough for a walk over the unused ones.
func (e *Engine) overMemoryLocked() bool {
	if e.shared.Memory.Surplus() == 0 || time.Since(e.mu.shrunk) < memoryPause {
		return false
	}
	e.mu.shrunk = time.Now()
	return true
}

// pin adds a pin for something that outlives the caller's own: a snapshot, a
// reader. The caller holds one.
func (e *Engine) pin(s *handle) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.entry.pins++
}

// shrink closes the longest unused stores while too many are open, those with large
// memtables while all have too much, and small ones while all weigh too much.
func (e *Engine) shrink() {
	e.mu.Lock()
	excess, surplus := e.mu.open-e.o.MaxOpen, e.shared.Memory.Surplus()
	var victims []*entry
	for el := e.mu.unused.Front(); el != nil && (excess > 0 || surplus > 0); {
		en := el.Value.(*entry)
		el = el.Next()
		inst := en.store.base().inst
		gives := inst.MemtableSurplus()
		// Closing waits for a running compaction; another store will do.
		if inst.Busy() || (excess <= 0 && gives == 0) || en.name == SmallDir {
			continue
		}
		victims = append(victims, e.takeLocked(en))
		excess--
		surplus -= gives
	}
	for over := e.mu.smallBytes - maxSmallOpen; over > 0 && e.mu.unusedSmall.Len() > 0; {
		en := e.takeLocked(e.mu.unusedSmall.Front().Value.(*entry))
		victims = append(victims, en)
		over -= en.store.base().weight
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
	for _, l := range []*list.List{&e.mu.unused, &e.mu.unusedSmall} {
		for el := l.Front(); el != nil; el = l.Front() {
			en := el.Value.(*entry)
			if time.Since(en.since) < idle {
				break
			}
			out = append(out, e.takeLocked(en))
		}
	}
	return out
}

// takeLocked makes an unused entry busy.
func (e *Engine) takeLocked(en *entry) *entry {
	en.in.Remove(en.unused)
	en.unused = nil
	en.busy = make(chan struct{})
	return en
}

// closeStores closes busy entries and forgets them. It also logs errors, for
// callers that have no use for them.
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
	s := en.store.base()
	err := en.store.close(en.dropped)
	if en.dropped {
		err = errors.Join(err, en.store.remove())
	}
	failed := s.Err() != nil
	full := fault.Is(s.Err(), fault.InsufficientStorage) && !s.inst.Unsynced() // then it is opened for reading
	_, index := en.store.(*Index)
	if full && !s.inst.ReadOnly() {
		if index {
			e.space.NoteTight() // the room of documents may be there
		} else {
			e.space.NoteFull()
		}
	}
	if failed {
		err = nil // the failure itself is in the log already
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uncountLocked(s)
	if failed && !full && !en.dropped && (!index || !s.inst.Damaged()) {
		e.mu.retry[en.name] = time.Now().Add(retryAfter)
		if s.inst.Unsynced() {
			e.mu.unsynced[en.name] = struct{}{}
		}
	}
	e.removeLocked(en)
	return err
}

// countOpen notes that a store holds a Pebble instance, or, with a weight, the view of a small one from now on.
func (e *Engine) countOpen(s *handle, weight int64) {
	e.mu.Lock()
	e.uncountLocked(s)
	s.counted, s.weight = true, weight
	if weight == 0 {
		e.mu.open++
	} else {
		e.mu.smallBytes += weight
		e.mu.openSmall++
	}
	excess := e.tooManyLocked()
	e.mu.Unlock()
	if excess {
		e.shrink()
	}
}

func (e *Engine) uncountLocked(s *handle) {
	switch {
	case !s.counted:
	case s.weight == 0:
		e.mu.open--
	default:
		e.mu.smallBytes -= s.weight
		e.mu.openSmall--
	}
	s.counted, s.weight = false, 0
}
