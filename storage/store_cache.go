package storage

import (
	"container/list"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

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
		if en.store.compactions.Busy() {
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
		err = errors.Join(err, e.moveToStaging(en.name))
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
