package storage

import (
	"sync/atomic"
	"time"
)

// syncs counts the batches of all stores that are on their way to the disk, and decides from
// that how long logs wait between two syncs. It is safe for concurrent use.
type syncs struct {
	stores  atomic.Int32  // with a batch on its way
	waiting atomic.Int64  // requests that wait for these batches
	commits atomic.Uint64 // batches whose way has ended
}

// begin notes that a batch for which so many requests wait is on its way. inflight counts the batches
// of its store.
func (s *syncs) begin(inflight *atomic.Int32, waiters int) {
	s.waiting.Add(int64(waiters))
	if inflight.Add(1) == 1 {
		s.stores.Add(1)
	}
}

// end notes that a batch is no longer on its way to the disk.
func (s *syncs) end(inflight *atomic.Int32, waiters int) {
	s.waiting.Add(-int64(waiters))
	if inflight.Add(-1) == 0 {
		s.stores.Add(-1)
	}
}

// interval is how long a log waits between two syncs. While few requests wait,
// waiting only costs. With many busy stores each syncs for itself, and with many requests
// they and not the disk are the limit: a short wait gathers more edits per sync, which
// costs a processor more than an edit does.
func (s *syncs) interval() time.Duration {
	if s.stores.Load() >= manyStores || s.waiting.Load() >= manyWaiters {
		return groupInterval
	}
	return 0
}

// manyStores is the number of stores with a batch on its way to the disk, and
// manyWaiters that of requests that wait for such batches, from which on logs wait.
const (
	manyStores  = 3
	manyWaiters = 16
)

// groupInterval is how long they wait after a sync before the next one.
const groupInterval = time.Millisecond
