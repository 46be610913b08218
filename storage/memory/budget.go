package memory

import "sync/atomic"

// Budget is bytes of memory that many takers share. It is safe for concurrent use.
type Budget struct {
	limit func() int64
	used  atomic.Int64
	given atomic.Int64 // back since the last Reclaimable
}

// NewBudget returns a budget of as many bytes as limit says at the moment.
func NewBudget(limit func() int64) *Budget { return &Budget{limit: limit} }

// A taker of more than small bytes gets largeShare percent of the memory only, with all
// others of the kind: few large ones, however slowly they go on, must not keep
// everybody else out.
const (
	small      = 1 << 20
	largeShare = 75
)

// take takes size bytes for a taker that holds some already. never: there cannot be so
// much, whatever others give back.
func (b *Budget) take(held, size int64) (ok, never bool) {
	most := b.limit()
	if held+size > small {
		most -= most / 100 * (100 - largeShare)
	}
	if held+size > most {
		return false, true
	}
	for {
		used := b.used.Load()
		if used > most-size {
			return false, false
		}
		if b.used.CompareAndSwap(used, used+size) {
			return true, false
		}
	}
}

// reclaimable is how many bytes are given back at once that count for Reclaimable: the
// room of smaller ones is used again at once.
const reclaimable = 8 << 20

// give takes bytes back.
func (b *Budget) give(size int64) {
	b.used.Add(-size)
	if size >= reclaimable {
		b.given.Add(size)
	}
}

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Reclaimable returns how many bytes of large takers were given back since it was last
// asked: the collector does not know yet that they are not needed.
func (b *Budget) Reclaimable() int64 { return b.given.Swap(0) }

// Claim is what one taker has of a budget. It belongs to one goroutine.
type Claim struct{ held int64 }

// Take takes size more bytes. never: there cannot be so much, whatever others give back.
func (c *Claim) Take(b *Budget, size int64) (ok, never bool) {
	if ok, never = b.take(c.held, size); ok {
		c.held += size
	}
	return ok, never
}

// Release gives everything back.
func (c *Claim) Release(b *Budget) {
	if c.held != 0 {
		b.give(c.held)
		c.held = 0
	}
}
