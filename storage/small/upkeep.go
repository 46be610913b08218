package small

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// maxTaken is how many stores Take returns at most.
const maxTaken = 64

// Upkeep is what the instance of the small stores is waiting for. It is safe for concurrent use.
type Upkeep struct {
	Damaged atomic.Bool   // its compactions met a damaged file
	Removed atomic.Bool   // of what was removed some may be on the disk still
	Urgent  atomic.Bool   // that was while the disk was full
	Forced  atomic.Int32  // callers that have it opened for writing although the disk is full
	NoRoom  atomic.Bool   // that cannot be done: there is no room at all
	after   atomic.Int64  // when a rewrite is tried again, in Unix nanoseconds
	Begun   atomic.Uint64 // rewrites
	Failed  atomic.Int32  // rewrites that failed one after the other

	mu    sync.Mutex
	asked map[[16]byte]struct{} // stores that were compacted
}

// ToRewrite reports whether the files are to be written anew now.
func (u *Upkeep) ToRewrite() bool {
	return u.Damaged.Load() && time.Now().UnixNano() >= u.after.Load()
}

// NotBefore has ToRewrite be false until then. It reports whether it was not.
func (u *Upkeep) NotBefore(t time.Time) bool {
	last := u.after.Load()
	return last < time.Now().UnixNano() && u.after.CompareAndSwap(last, t.UnixNano())
}

// Ask has what a store has no more leave the disk before long.
func (u *Upkeep) Ask(store [16]byte) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asked == nil {
		u.asked = map[[16]byte]struct{}{}
	}
	u.asked[store] = struct{}{}
}

// Take returns the keys of some stores of Ask, and forgets these.
func (u *Upkeep) Take() (spans []pebble.KeyRange) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for store := range u.asked {
		if len(spans) == maxTaken {
			break
		}
		lo, hi := Bounds(store)
		spans = append(spans, pebble.KeyRange{Start: lo, End: hi})
		delete(u.asked, store)
	}
	return spans
}
