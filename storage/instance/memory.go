package instance

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// MemoryBudget divides what the engine may take between blocks and memtables.
// Pebble charges every memtable to the block cache, and keeps two of their full
// size per store that was once busy; left to itself, a handful of such stores pushes out
// every block, the indexes first needed for each read among them.
//
// Therefore the cache is made larger than it may become, by the memtables of all
// stores that may be open, and the difference is reserved. While memtables take
// less than half of the total they leave the rest to the blocks; what they take
// above that is given back, so that blocks always have the other half.
type MemoryBudget struct {
	Cache *pebble.Cache
	total int64
	spare int64 // size of the cache above total

	mu struct {
		sync.Mutex
		memtables int64 // upper bound of what the stores hold
		least     int64 // of that, what they hold in any case: their first memtables
		reserved  int64
		release   func() // gives back what is reserved
	}
}

// NewMemoryBudget divides total bytes between blocks and the memtables of as
// many stores as may be open at once.
func NewMemoryBudget(total int64, stores int) *MemoryBudget {
	m := &MemoryBudget{total: total, spare: int64(stores) * 2 * memTableBytes}
	m.Cache = pebble.NewCache(m.total + m.spare)
	m.mu.release = func() {}
	m.change(0, 0)
	return m
}

// change notes that the memtables of a store hold so much more, or less, and so much of
// that in any case.
func (m *MemoryBudget) change(by, least int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.memtables += by
	m.mu.least += least
	excess := max(0, m.mu.memtables-m.total/2)
	if want := max(0, m.spare-excess); want != m.mu.reserved {
		m.mu.release()
		m.mu.release = m.Cache.Reserve(int(want))
		m.mu.reserved = want
	}
}

// Surplus returns how many bytes the memtables of all stores hold above twice the total
// that they share with blocks; 0: none. A store that is closed and opened again has its
// first, small memtable. Where so many stores are open that those alone take most of it,
// larger ones may take the total besides: else stores would be closed after each write,
// and that would not help.
func (m *MemoryBudget) Surplus() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, m.mu.memtables-max(2*m.total, m.mu.least+m.total))
}

// Memtables returns what the memtables of all stores hold at most, in bytes.
func (m *MemoryBudget) Memtables() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.memtables
}

// Close gives everything back when no store is left.
func (m *MemoryBudget) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.release()
	m.mu.release = func() {}
	m.Cache.Unref()
}

// memtables bounds what one store's memtables hold: the one that takes the
// writes, and the one of the same size or smaller that is being flushed or kept
// for the next turn. Every flush doubles them, up to memTableBytes.
type memtables struct {
	mu   sync.Mutex
	size int64 // of the one that takes the writes; 0: the store is not open
	held int64
}

// opened charges the store for its first memtable. A flush may have come
// before: pebble.Open flushes what the log held.
func (t *memtables) opened(m *MemoryBudget) { t.grow(m, 0) }

// grow notes that so many memtables were flushed.
func (t *memtables) grow(m *MemoryBudget, flushed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before, least := t.held, int64(0)
	if t.size == 0 {
		t.size, least = IdleMemTable, IdleMemTable
	}
	for ; flushed > 0 && t.size < memTableBytes; flushed-- {
		t.size *= 2
	}
	if t.held = t.size; t.size > IdleMemTable {
		t.held *= 2
	}
	m.change(t.held-before, least)
}

// surplus returns how many bytes fewer the store would hold if it were opened anew.
func (t *memtables) surplus() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, t.held-IdleMemTable)
}

// large reports whether the store was written so much to that it is worth to
// keep its keyspaces in tables of their own.
func (t *memtables) large() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size >= splitTables
}

// closed takes the charge back.
func (t *memtables) closed(m *MemoryBudget) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m.change(-t.held, -min(t.size, IdleMemTable)) // nothing for a store that was not open
	t.size, t.held = 0, 0
}
