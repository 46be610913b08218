package instance

import "testing"

// TestMemory: blocks get what memtables leave, and half of the total always.
func TestMemory(t *testing.T) {
	const mb = 1 << 20
	m := NewMemoryBudget(128*mb, 4)
	defer m.Close()
	stores := make([]memtables, 20)
	// capacity is what Pebble takes for blocks and memtables together.
	capacity := func() int64 { return m.Cache.MaxSize() - m.mu.reserved }
	check := func(held, want int64) {
		t.Helper()
		if m.mu.memtables != held || capacity() != want {
			t.Errorf("memtables take %d of %d, want %d of %d", m.mu.memtables, capacity(), held, want)
		}
	}
	check(0, 128*mb)
	for i := range stores {
		stores[i].opened(m)
	}
	check(20*IdleMemTable, 128*mb)
	for i := range 4 {
		stores[i].grow(m, 3)
		stores[i].grow(m, 30)
	}
	check(4*2*memTableBytes+16*IdleMemTable, 128*mb+16*IdleMemTable)
	// As much as was planned for is given back; more there is not.
	for i := range stores {
		stores[i].grow(m, 30)
	}
	check(20*2*memTableBytes, 128*mb+4*2*memTableBytes)
	for i := range stores {
		stores[i].closed(m)
	}
	check(0, 128*mb)
}
