package meta

import (
	"maps"
	"slices"
	"sync"

	"divan/shard/ring"
)

// maxTombstones bounds the deleted databases that are remembered one by one.
const maxTombstones = 10_000

// tombstones remembers the suffixes of deleted databases, so that a database that
// is made again never gets the suffix of an earlier one of its name: copies
// left behind on a node that was away can then never be taken for new ones.
// Names beyond maxTombstones are forgotten, the oldest first; floor, the largest
// suffix forgotten, stands in for them.
type tombstones struct {
	floor int64
	last  map[string]int64 // name → its largest suffix
	queue []tombstone      // in the order of deletion

	mu    sync.RWMutex        // of tails, which any goroutine reads; the rest is the machine's
	tails map[string]struct{} // what the names of their copies end with
}

type tombstone struct {
	name   string
	suffix int64
}

func newTombstones() *tombstones {
	return &tombstones{last: map[string]int64{}, tails: map[string]struct{}{}}
}

// nextSuffix returns the suffix of a new database for which wish was proposed.
func (t *tombstones) nextSuffix(name string, wish int64) int64 {
	return max(wish, t.floor+1, t.last[name]+1)
}

func (t *tombstones) add(name string, suffix int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[name] = suffix
	t.queue = append(t.queue, tombstone{name, suffix})
	t.tails[t.queue[len(t.queue)-1].tail()] = struct{}{}
	if len(t.queue) <= maxTombstones {
		return
	}
	oldest := t.queue[0]
	t.queue = t.queue[1:]
	delete(t.tails, oldest.tail())
	t.floor = max(t.floor, oldest.suffix)
	if t.last[oldest.name] == oldest.suffix {
		delete(t.last, oldest.name)
	}
}

// tail returns the end of the names of its copies.
func (t *tombstone) tail() string {
	return ring.CopyTail(ring.CopyName(ring.Range{}, t.name, suffixOf(t.suffix)))
}

// hasCopy reports whether a copy is of a database that is remembered as deleted.
func (t *tombstones) hasCopy(copyName string) bool {
	tail := ring.CopyTail(copyName)
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.tails[tail]
	return ok
}

// clone copies what goes into a snapshot.
func (t *tombstones) clone() *tombstones {
	return &tombstones{floor: t.floor, last: maps.Clone(t.last), queue: slices.Clone(t.queue)}
}
