package small

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// When what no store has any more is to leave the disk: so long after the end of the time before.
const (
	RemovedEvery   = time.Hour
	removedFull    = 10 * time.Second // while the disk is full
	CompactedEvery = time.Minute
	maxTaken       = 64   // stores at once: with one go the tables that others are in
	maxCompacted   = 1000 // stores that are remembered
)

// Reclaim tracks the space that the instance takes on the disk for content that no store has any
// more. It is safe for concurrent use.
type Reclaim struct {
	mu            sync.Mutex
	removed       bool // stores were
	urgent        bool // that was while the disk was full
	lastRemoved   time.Time
	compacted     map[[16]byte]struct{} // stores that were
	lastCompacted time.Time
}

// Start has TakeRemoved count from now on. Stores may have been removed before.
func (r *Reclaim) Start() { r.EndRemoved(false, false) }

// Removed says that stores were removed, with urgent while the disk is full.
func (r *Reclaim) Removed(urgent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed, r.urgent = true, r.urgent || urgent
}

// TakeRemoved reports whether what was removed is to leave the disk now, and forgets that it was:
// EndRemoved has to follow. full: the disk is; with urgent it was meanwhile.
func (r *Reclaim) TakeRemoved(full bool) (due, urgent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := RemovedEvery
	if full || r.urgent {
		wait = removedFull
	}
	if !r.removed || time.Since(r.lastRemoved) < wait {
		return false, false
	}
	urgent = full || r.urgent
	r.removed, r.urgent = false, false
	return true, urgent
}

// EndRemoved says that what TakeRemoved told of has left the disk, or that it is to be told of again.
func (r *Reclaim) EndRemoved(done, urgent bool) {
	if !done {
		r.Removed(urgent)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastRemoved = time.Now()
}

// Compacted says that a store was compacted: what it has no more is to leave the disk before long. Of very many it
// does with what was removed.
func (r *Reclaim) Compacted(store [16]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.compacted == nil || len(r.compacted) >= maxCompacted {
		r.removed = r.removed || len(r.compacted) > 0
		r.compacted = map[[16]byte]struct{}{}
	}
	r.compacted[store] = struct{}{}
}

// TakeCompacted returns the keys of some stores that were compacted, and forgets these: EndCompacted has to
// follow. nil: it is not time.
func (r *Reclaim) TakeCompacted() (spans []pebble.KeyRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.lastCompacted) < CompactedEvery {
		return nil
	}
	for store := range r.compacted {
		if len(spans) == maxTaken {
			break
		}
		lo, hi := Bounds(store)
		spans = append(spans, pebble.KeyRange{Start: lo, End: hi})
		delete(r.compacted, store)
	}
	return spans
}

// EndCompacted says that what TakeCompacted returned has left the disk, or that it is to with what was removed.
func (r *Reclaim) EndCompacted(done bool) {
	if !done {
		r.Removed(false)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastCompacted = time.Now()
}
