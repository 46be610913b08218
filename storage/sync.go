package storage

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Commit is an applied batch on its way to the disk.
type Commit struct {
	s *Store
	b *pebble.Batch
}

// Wait blocks until the batch and all before it are durable. It must be called
// once. An error means that the batch may be lost, and that the store has
// stopped.
func (c *Commit) Wait() error {
	err := c.b.SyncWait()
	c.s.syncEnded()
	c.s.engine.commits.Add(1)
	if err == nil {
		// The log keeps its errors from Pebble (package instance): they are found here.
		err = c.s.Err()
	}
	if err == nil {
		err = c.b.Close()
	}
	if err != nil {
		return c.s.inst.Fail(fmt.Errorf("sync batch: %w", err))
	}
	return nil
}

// syncEnded notes that a batch is no longer on its way to the disk.
func (s *Store) syncEnded() {
	if s.inflight.Add(-1) == 0 {
		s.engine.syncing.Add(-1)
	}
}

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

// groupInterval is how long a log waits after a sync before the next one, while
// many stores are written at once: fewer syncs with more edits each.
const groupInterval = time.Millisecond
