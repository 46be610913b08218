package storage

import (
	"sync"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// storeCache is the open stores of an engine, of any kind: it opens them on demand, keeps them
// open while they are pinned or may stay, and closes the others. It is safe for concurrent use.
//
// Invariants:
//
//	E2  a store is open at most once: its entry is busy from before it is
//	    opened until after it is closed, and a goroutine that meets a busy
//	    entry waits.
//	E3  a store with pins is never closed.
//
// LOCKS mu is a leaf: nothing is opened, closed, synced or waited for under it.
type storeCache struct {
	env      *environment
	failures failures
	drained  chan struct{} // closed, and no entry left

	mu struct {
		sync.Mutex
		closed  bool
		entries map[string]*entry
		lru     lru
	}
}

func newStoreCache(env *environment) *storeCache {
	c := &storeCache{env: env, drained: make(chan struct{})}
	c.mu.entries, c.mu.lru.env = map[string]*entry{}, env
	c.failures.env = env
	c.failures.refusals, c.failures.unsynced = map[string]refusal{}, map[string]struct{}{}
	return c
}

// newHandle makes the handle of a store with an instance that is not open, and is to be opened for reading or not.
func (c *storeCache) newHandle(name string, readOnly bool) handle {
	log := c.env.log.With(zap.String("store", name))
	return handle{env: c.env, cache: c, name: name, log: log, inst: c.env.shared.New(c.env.path(name), log, readOnly)}
}

// acquire opens a store when it is not open, and pins it.
func (c *storeCache) acquire(name string, open func(name string) (member, error)) (member, error) {
	for {
		space := !c.env.o.ReadOnly && (!c.env.space.Full() || c.env.space.Err() == nil)
		c.mu.Lock()
		if c.mu.closed {
			c.mu.Unlock()
			return nil, errClosed()
		}
		en := c.mu.entries[name]
		switch {
		case en == nil:
			en = c.newBusyLocked(name)
			c.mu.Unlock()
			return c.open(en, open)
		case en.busy != nil:
			wait := en.busy
			c.mu.Unlock()
			<-wait
		case en.dropped:
			c.mu.Unlock()
			return nil, noStore()
		case en.pins == 0 && space && en.store.base().inst.ReadOnly():
			en.take()
			c.mu.Unlock()
			_ = c.closeStores([]*entry{en}) // logged there
		default:
			en.pin()
			c.mu.Unlock()
			return en.store, nil
		}
	}
}

func noStore() error { return fault.New(fault.NoCopy, "no_db_file") }

func errClosed() error { return fault.New(fault.Closed, "The node is shutting down.") }

// newBusyLocked enters a store that the caller is going to open or change on
// disk; entry.endBusy or removeLocked must follow.
func (c *storeCache) newBusyLocked(name string) *entry {
	en := &entry{name: name, busy: make(chan struct{})}
	c.mu.entries[name] = en
	return en
}

// removeLocked forgets a busy entry.
func (c *storeCache) removeLocked(en *entry) {
	delete(c.mu.entries, en.name)
	en.endBusy()
	c.drainedLocked()
}

// remove is removeLocked for a caller without the lock.
func (c *storeCache) remove(en *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(en)
}

// addBusy makes a busy entry for a store that is not open; remove must follow. The error is
// fault.Exists when it is open.
func (c *storeCache) addBusy(name string) (*entry, error) {
	for {
		c.mu.Lock()
		en := c.mu.entries[name]
		switch {
		case c.mu.closed:
			c.mu.Unlock()
			return nil, errClosed()
		case en == nil:
			en = c.newBusyLocked(name)
			c.mu.Unlock()
			return en, nil
		case en.busy == nil:
			c.mu.Unlock()
			return nil, fault.New(fault.Exists, "file_exists")
		}
		wait := en.busy
		c.mu.Unlock()
		<-wait
	}
}

// open opens the store of a busy entry with one pin.
func (c *storeCache) open(en *entry, open func(name string) (member, error)) (member, error) {
	if err := c.failures.refused(en.name); err != nil {
		c.remove(en)
		return nil, err
	}
	s, err := open(en.name)
	if fault.Is(err, fault.InsufficientStorage) {
		c.env.space.NoteFull()
		if c.failures.readsOnly(en.name) {
			s, err = open(en.name)
		}
	}
	if err != nil {
		c.failures.notOpened(en.name, err)
		c.remove(en)
		return nil, err
	}
	c.failures.opened(en.name)
	c.mu.Lock()
	defer c.mu.Unlock()
	en.store, s.base().entry, en.pins = s, en, 1
	en.endBusy()
	return s, nil
}

// release takes back one pin of acquire. A store that was dropped meanwhile, or
// has failed, is closed with its last pin.
func (c *storeCache) release(s *handle) {
	c.mu.Lock()
	en := s.entry
	en.pins--
	if en.pins > 0 {
		c.mu.Unlock()
		return
	}
	if en.dropped || c.mu.closed || s.Err() != nil || !s.counted {
		en.busy = make(chan struct{})
		c.mu.Unlock()
		_ = c.closeStores([]*entry{en}) // logged there
		return
	}
	c.mu.lru.add(en, s.weight)
	excess := c.mu.lru.tooMany() || c.mu.lru.overMemory()
	c.mu.Unlock()
	if excess {
		c.shrink()
	}
}

// pin adds a pin for something that outlives the caller's own: a snapshot, a
// reader. The caller holds one.
func (c *storeCache) pin(s *handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.entry.pins++
}

// countOpen notes that a store holds a Pebble instance, or, with a weight, the view of a small one from now on.
func (c *storeCache) countOpen(s *handle, weight int64) {
	c.mu.Lock()
	c.mu.lru.count(s, weight)
	excess := c.mu.lru.tooMany()
	c.mu.Unlock()
	if excess {
		c.shrink()
	}
}

// uncount notes that a store that is not to stay open is closed, or is closed with its last pin.
func (c *storeCache) uncount(s *handle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.lru.uncount(s)
}
