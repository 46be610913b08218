package memory

import (
	"sync"
	"sync/atomic"
)

// Budget is bytes of memory that many takers share. It is safe for concurrent use.
//
// LOCKS mu is a leaf.
type Budget struct {
	limit func() int64
	mu    struct {
		sync.Mutex
		used  int64
		large int64 // of used, what large takers have
	}
	given atomic.Int64 // back since the last Reclaimable
}

// NewBudget returns a budget of as many bytes as limit says at the moment.
func NewBudget(limit func() int64) *Budget { return &Budget{limit: limit} }

// A taker of more than small bytes is large. Large takers get largeShare percent of the
// memory together: few of them, however slowly they go on, must not keep all others out.
const (
	small      = 1 << 20
	largeShare = 75
)

// most returns how many bytes a taker of size bytes may have when there is no other.
func (b *Budget) most(size int64) int64 {
	most := b.limit()
	if size > small {
		most -= most / 100 * (100 - largeShare)
	}
	return most
}

// free returns how many more bytes there are for a taker that holds some already, when it takes size of them.
func (b *Budget) free(held, size int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.limit() - b.mu.used
	if held+size > small {
		free = min(free, b.most(held+size)-b.mu.large-becomes(held))
	}
	return free
}

// becomes returns how much of what a taker holds becomes that of a large one with what it takes.
func becomes(held int64) int64 {
	if held > small {
		return 0
	}
	return held
}

// take takes size bytes for a taker that holds some already.
func (b *Budget) take(held, size int64) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	large := held+size > small
	if b.mu.used+size > b.limit() || large && b.mu.large+becomes(held)+size > b.most(held+size) {
		return false
	}
	b.mu.used += size
	if large {
		b.mu.large += becomes(held) + size
	}
	return true
}

// reclaimable is how many bytes are given back at once that count for Reclaimable: the
// space of smaller ones is used again at once.
const reclaimable = 8 << 20

// give takes size bytes back of a taker that holds some.
func (b *Budget) give(held, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.used -= size
	if held > small {
		b.mu.large -= size + becomes(held-size)
	}
	if size >= reclaimable {
		b.given.Add(size)
	}
}

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.used
}

// Reclaimable returns how many bytes of large takers were given back since it was last
// asked: the collector does not know yet that they are not needed.
func (b *Budget) Reclaimable() int64 { return b.given.Swap(0) }
