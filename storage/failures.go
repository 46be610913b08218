package storage

import (
	"errors"
	"sync"
	"time"

	"divan/storage/fault"
)

// failures remembers the stores that have failed: until when each is not opened again, and whether
// its log is synced. Only the goroutine that opens or closes a store, with its entry in storeCache
// busy, tells of it or asks, and does so before the entry ends being busy; pardon may come at any
// time. It is safe for concurrent use; mu is a leaf.
type failures struct {
	env *environment

	mu       sync.Mutex
	refusals map[string]refusal
	// stores that are not opened for reading before they were opened for writing
	unsynced map[string]struct{}
}

// refusal is why, and until when, a store is not opened again.
type refusal struct {
	until time.Time
	err   error
}

// retryAfter is how long a store that stopped stays closed before it is opened
// again: a disk that is full or failing gets time to recover.
const retryAfter = 2 * time.Second

func errStopped() error {
	return fault.New(fault.Unavailable, "The shard has stopped after a failure of its disk.")
}

// readsOnly reports whether a store is to be opened for reading: the disk is full.
// One whose log could not be synced has to be flushed first.
func (f *failures) readsOnly(name string) bool {
	if f.env.o.ReadOnly {
		return true
	}
	if f.env.space.Err() == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, unsynced := f.unsynced[name]
	return !unsynced
}

// refused returns why a store is not to be opened now, nil when it may be.
func (f *failures) refused(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.refusals[name]; time.Until(r.until) > 0 {
		return r.err
	}
	return nil
}

// opened notes that a store is open.
func (f *failures) opened(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.refusals, name)
	delete(f.unsynced, name)
}

// notOpened notes that a store could not be opened. It is refused for a while, when opening it again
// at once would not help.
func (f *failures) notOpened(name string, err error) {
	switch {
	case name == SmallDir && fault.Is(err, fault.Corruption) && !f.env.o.ReadOnly: // each small store asks again
		f.refuse(name, fault.Wrap(fault.Corruption, fault.Reason(err), err))
	case errors.Is(err, ErrLost) || errors.Is(err, errNotMade):
	case fault.Is(err, fault.InsufficientStorage) || fault.Is(err, fault.Unavailable):
		f.refuse(name, errStopped())
	}
}

// stopped notes that a store was closed because it had failed. unsynced: its log is.
func (f *failures) stopped(name string, unsynced bool) {
	f.refuse(name, errStopped())
	if unsynced {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.unsynced[name] = struct{}{}
	}
}

func (f *failures) refuse(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[name] = refusal{time.Now().Add(retryAfter), err}
}

// pardon ends the refusal of a store that could not be opened because it is damaged.
func (f *failures) pardon(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fault.Is(f.refusals[name].err, fault.Corruption) {
		delete(f.refusals, name)
	}
}
