package meta

import (
	"maps"
	"slices"
	"sync"

	"divan/shard/ring"
)

// maxGraves bounds the deleted databases that are remembered one by one.
const maxGraves = 10_000

// graves remembers the suffixes of deleted databases, so that a database that
// is made again never gets the suffix of an earlier one of its name: copies
// left behind on a node that was away can then never be taken for new ones.
// Names beyond maxGraves are forgotten, the oldest first; floor, the largest
// suffix forgotten, stands in for them.
type graves struct {
	floor int64
	last  map[string]int64 // name → its largest suffix
	queue []grave          // in the order of deletion

	mu    sync.RWMutex        // of tails, which anybody reads; the rest is the machine's
	tails map[string]struct{} // what the names of their copies end with
}

type grave struct {
	name   string
	suffix int64
}

func newGraves() *graves { return &graves{last: map[string]int64{}, tails: map[string]struct{}{}} }

// suffix returns the suffix of a new database for which wish was proposed.
func (g *graves) suffix(name string, wish int64) int64 {
	return max(wish, g.floor+1, g.last[name]+1)
}

func (g *graves) bury(name string, suffix int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last[name] = suffix
	g.queue = append(g.queue, grave{name, suffix})
	g.tails[g.queue[len(g.queue)-1].tail()] = struct{}{}
	if len(g.queue) <= maxGraves {
		return
	}
	oldest := g.queue[0]
	g.queue = g.queue[1:]
	delete(g.tails, oldest.tail())
	g.floor = max(g.floor, oldest.suffix)
	if g.last[oldest.name] == oldest.suffix {
		delete(g.last, oldest.name)
	}
}

// tail is what the names of its copies end with.
func (g *grave) tail() string {
	return ring.CopyTail(ring.CopyName(ring.Range{}, g.name, suffixOf(g.suffix)))
}

// hold reports whether a copy is of a database that is remembered as deleted.
func (g *graves) hold(copyName string) bool {
	tail := ring.CopyTail(copyName)
	g.mu.RLock()
	defer g.mu.RUnlock()
	_, ok := g.tails[tail]
	return ok
}

// Buried reports whether a copy belongs to a database that was deleted, as far
// as this node has heard. Of the databases that were deleted, the last ten
// thousand are known.
func (m *Meta) Buried(copyName string) bool { return m.fsm.graves.Load().hold(copyName) }

// clone copies what goes into a snapshot.
func (g *graves) clone() *graves {
	return &graves{floor: g.floor, last: maps.Clone(g.last), queue: slices.Clone(g.queue)}
}
