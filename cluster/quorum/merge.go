package quorum

import (
	"math"
	"strings"
)

// Merge orders the rows of several sources, each of which is ordered already.
// It sees nothing of a row but its key K, an id for example, so
// that the rows themselves stay in the batches they came in: the caller asks
// [Merge.Best] for the source whose row is next, takes the row, and tells the
// key of that source's next row with [Merge.Set], or [Merge.End].
//
// One source costs nothing per row, two cost one comparison; more are kept in
// a tournament of losers (one comparison per level). Sources with equal keys
// come in the order of their numbers.
type Merge[K any] struct {
	keys    []K
	compare func(a, b *K) int
	ended   []bool
	losers  []int32 // losers[1:] are the inner nodes of the tournament, for 3 sources and more
	best    int32
	fresh   bool // best reflects keys
	left    int  // sources that have not ended
}

// NewMerge returns a merge of that many sources; compare is below 0 when a's row
// comes before b's, in the direction of the sources. Every source must be told by
// Set or End before the first Best.
func NewMerge[K any](sources int, compare func(a, b *K) int) *Merge[K] {
	m := &Merge[K]{keys: make([]K, sources), ended: make([]bool, sources), compare: compare, left: sources}
	if sources > 2 {
		m.losers = make([]int32, sources)
	}
	return m
}

// Set tells the key of the row that source i stands at. After Best it must be
// called for the source that Best named (or End), and for no other.
func (m *Merge[K]) Set(i int, key K) {
	m.keys[i] = key
	m.moved(i)
}

// End tells that source i has no more rows. It must be told only once.
func (m *Merge[K]) End(i int) {
	m.ended[i] = true
	m.left--
	m.moved(i)
}

// Best returns the source that holds the next row, and false when all have
// ended.
func (m *Merge[K]) Best() (int, bool) {
	if !m.fresh {
		m.build()
	}
	return int(m.best), m.left > 0
}

// moved restores the order after the row of source i changed.
func (m *Merge[K]) moved(i int) {
	if !m.fresh { // still being filled for the first time
		return
	}
	switch len(m.keys) {
	case 1:
	case 2:
		m.best = m.duel(0, 1)
	default:
		m.replay(int32(i))
	}
}

// build runs the first tournament.
func (m *Merge[K]) build() {
	m.fresh = true
	switch n := int32(len(m.keys)); n {
	case 0, 1:
	case 2:
		m.best = m.duel(0, 1)
	default:
		// Source i is the leaf n+i of a complete tree whose root is 1.
		winners := make([]int32, 2*n)
		for i := range n {
			winners[n+i] = i
		}
		for node := n - 1; node >= 1; node-- {
			a, b := winners[2*node], winners[2*node+1]
			w := m.duel(a, b)
			winners[node], m.losers[node] = w, a+b-w
		}
		m.best = winners[1]
	}
}

// replay plays the matches on the way from leaf i to the root again.
func (m *Merge[K]) replay(i int32) {
	w := i
	for node := (int32(len(m.keys)) + i) / 2; node >= 1; node /= 2 {
		if l := m.losers[node]; m.duel(l, w) == l {
			m.losers[node], w = w, l
		}
	}
	m.best = w
}

// duel returns which of two sources comes first.
func (m *Merge[K]) duel(a, b int32) int32 {
	if m.ended[a] {
		return b
	}
	if m.ended[b] {
		return a
	}
	switch c := m.compare(&m.keys[a], &m.keys[b]); {
	case c == 0:
		return min(a, b)
	case c < 0:
		return a
	}
	return b
}

// ByID compares rows whose key is their id, by raw bytes.
func ByID(desc bool) func(a, b *string) int {
	if desc {
		return func(a, b *string) int { return strings.Compare(*b, *a) }
	}
	return func(a, b *string) int { return strings.Compare(*a, *b) }
}

// Share says how many rows of one of n sources will most likely be needed for
// limit rows after skip others: hashes spread rows evenly, so its share and a
// margin of two standard deviations. 0 means all: limit is negative.
func Share(skip, limit, n int) int {
	if limit < 0 {
		return 0
	}
	all := max(skip, 0) + limit
	share := float64(all) / float64(n)
	return max(1, min(all, int(share+2*math.Sqrt(share))+2))
}
