package storage

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// shrink closes unused stores that there is no space for.
func (c *storeCache) shrink() {
	c.mu.Lock()
	victims := c.mu.lru.takeExcess()
	c.mu.Unlock()
	_ = c.closeStores(victims) // logged there
}

// closeIdle closes the stores that were unused for so long.
func (c *storeCache) closeIdle(idle time.Duration) error {
	c.mu.Lock()
	unused := c.mu.lru.takeIdle(idle)
	c.mu.Unlock()
	return c.closeStores(unused)
}

// closeUnused closes a store that is open without pins.
func (c *storeCache) closeUnused(name string) error {
	c.mu.Lock()
	var unused []*entry
	if en := c.mu.entries[name]; en != nil && en.unused != nil {
		unused = append(unused, en.take())
	}
	c.mu.Unlock()
	return c.closeStores(unused)
}

// closeStores closes busy entries and forgets them. It also logs errors, for
// callers that have no use for them.
func (c *storeCache) closeStores(entries []*entry) error {
	var errs []error
	for _, en := range entries {
		if err := c.closeStore(en); err != nil {
			c.env.log.Error("closing a store failed", zap.String("store", en.name), zap.Error(err))
			errs = append(errs, fmt.Errorf("close store %s: %w", en.name, err))
		}
	}
	return errors.Join(errs...)
}

func (c *storeCache) closeStore(en *entry) error {
	s := en.store.base()
	err := en.store.close(en.dropped)
	if en.dropped && !en.displaced {
		err = errors.Join(err, en.store.remove())
	}
	failed := s.Err() != nil
	full := fault.Is(s.Err(), fault.InsufficientStorage) && !s.inst.Unsynced() // then it is opened for reading
	_, index := en.store.(*Index)
	if full && !s.inst.ReadOnly() {
		if index {
			c.env.space.NoteTight() // the space of documents may be there
		} else {
			c.env.space.NoteFull()
		}
	}
	if failed {
		err = nil // the failure itself is in the log already
	}
	if failed && !full && !en.dropped && (!index || !s.inst.Damaged()) {
		c.failures.stopped(en.name, s.inst.Unsynced())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.lru.uncount(s)
	c.removeLocked(en)
	return err
}

// closeWait is how long close waits for the users of pinned stores.
const closeWait = 3 * time.Second

// close closes every store, and has no other one be opened. Stores in use are waited for; drained is
// false when one still is, which the error names, and for another call.
func (c *storeCache) close() (drained bool, err error) {
	c.mu.Lock()
	if c.mu.closed {
		c.mu.Unlock()
		return false, nil
	}
	c.mu.closed = true
	c.drainedLocked()
	c.mu.Unlock()
	err = c.closeIdle(0)
	deadline := time.NewTimer(closeWait)
	defer deadline.Stop()
	select {
	case <-c.drained:
		return true, err
	case <-deadline.C:
		return false, errors.Join(err, c.stillOpen())
	}
}

// drainedLocked announces that a closed cache has no entry left.
func (c *storeCache) drainedLocked() {
	if c.mu.closed && len(c.mu.entries) == 0 {
		close(c.drained)
	}
}

func (c *storeCache) stillOpen() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.mu.entries {
		return fmt.Errorf("%d stores are still in use, one is %s", len(c.mu.entries), name)
	}
	return nil
}
