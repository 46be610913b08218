package small

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// When what no store has any more is to leave the disk.
const (
	RemovedEvery   = time.Hour
	removedFull    = 10 * time.Second // while the disk is full
	CompactedEvery = time.Minute
	maxCompacted   = 64 // stores at once: with one go the tables that others are in
)

// Reclaim is what the instance has on the disk that no store has any more. It is safe for concurrent use.
type Reclaim struct {
	mu            sync.Mutex
	removed       bool      // stores were
	urgent        bool      // that was while the disk was full
	lastRemoved   time.Time // when DueRemoved reported true
	compacted     map[[16]byte]struct{}
	lastCompacted time.Time
}

// Start has DueRemoved count from now on. Stores may have been removed before.
func (r *Reclaim) Start() {
	r.Removed(false)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastRemoved = time.Now()
}

// Removed says that stores were removed, with urgent while the disk is full.
func (r *Reclaim) Removed(urgent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removed, r.urgent = true, r.urgent || urgent
}

// DueRemoved reports whether what was removed is to leave the disk now, and forgets that it was. full: the disk is; with
// urgent it was meanwhile.
func (r *Reclaim) DueRemoved(full bool) (due, urgent bool) {
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
	r.removed, r.urgent, r.lastRemoved = false, false, time.Now()
	return true, urgent
}

// Compacted says that a store was compacted: what it has no more is to leave the disk before long.
func (r *Reclaim) Compacted(store [16]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.compacted == nil {
		r.compacted = map[[16]byte]struct{}{}
	}
	r.compacted[store] = struct{}{}
}

// DueCompacted returns the keys of some stores that were compacted, and forgets these. nil: it is not time.
func (r *Reclaim) DueCompacted() (spans []pebble.KeyRange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.lastCompacted) < CompactedEvery {
		return nil
	}
	for store := range r.compacted {
		if len(spans) == maxCompacted {
			break
		}
		lo, hi := Bounds(store)
		spans = append(spans, pebble.KeyRange{Start: lo, End: hi})
		delete(r.compacted, store)
		r.lastCompacted = time.Now()
	}
	return spans
}
