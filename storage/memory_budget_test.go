package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMemory: blocks get what memtables leave, and half of the total always.
func TestMemory(t *testing.T) {
	const mb = 1 << 20
	m := newMemoryBudget(128*mb, 4)
	defer m.close()
	stores := make([]memtables, 20)
	// capacity is what Pebble takes for blocks and memtables together.
	capacity := func() int64 { return m.cache.MaxSize() - m.mu.reserved }
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
	check(20*idleMemTable, 128*mb)
	for i := range 4 {
		stores[i].grow(m, 3)
		stores[i].grow(m, 30)
	}
	check(4*2*memTableBytes+16*idleMemTable, 128*mb+16*idleMemTable)
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

// TestMemoryOfStores: what stores are charged for covers what Pebble took.
func TestMemoryOfStores(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: 2})
	var all []*Store
	for i := range 5 {
		must(t, e.Create(storeName(i), CreateOptions{}))
		s, err := e.Acquire(storeName(i))
		must(t, err)
		writeOne(t, s)
		for range 2 * i {
			must(t, s.db.Load().Flush())
			writeOne(t, s)
		}
		m := s.db.Load().Metrics()
		if took := int64(m.MemTable.Size + m.MemTable.ZombieSize); took > s.memtables.held {
			t.Errorf("%d flushes: memtables take %d, the store is charged for %d", 2*i, took, s.memtables.held)
		}
		all = append(all, s)
	}
	for _, s := range all {
		e.Release(s)
	}
	must(t, e.closeStores(e.takeUnused(0)))
	if left := e.memory.mu.memtables; left != 0 {
		t.Errorf("closed stores are charged for %d bytes", left)
	}
}
