package storage

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/instance"
)

// TestMemoryOfStores: what stores are charged for covers what Pebble took.
func TestMemoryOfStores(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: 2})
	var all []*Store
	for i := range 5 {
		must(t, e.Create(storeName(i), CreateOptions{}))
		before := e.env.shared.Memory.Memtables()
		s, err := e.Acquire(storeName(i))
		must(t, err)
		writeOne(t, s)
		for range 2 * i {
			must(t, s.inst.DB().Flush())
			writeOne(t, s)
		}
		m := s.inst.DB().Metrics()
		if took := int64(m.MemTable.Size + m.MemTable.ZombieSize); took > e.env.shared.Memory.Memtables()-before {
			t.Errorf("%d flushes: memtables take %d, the store is charged for %d", 2*i, took, e.env.shared.Memory.Memtables()-before)
		}
		all = append(all, s)
	}
	for _, s := range all {
		e.Release(s)
	}
	must(t, e.cache.closeIdle(0))
	if left := e.env.shared.Memory.Memtables(); left != 0 {
		t.Errorf("closed stores are charged for %d bytes", left)
	}
}

// TestMemoryOfManyStores: however many stores are written to, their memtables together
// stay within twice what blocks and memtables share, and the stores work on.
func TestMemoryOfManyStores(t *testing.T) {
	const stores, total = 24, 8 << 20
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: stores, CacheBytes: total})
	most := int64(0)
	for i := range stores {
		must(t, e.Create(storeName(i), CreateOptions{}))
	}
	for round := range 3 {
		for i := range stores {
			s, err := e.Acquire(storeName(i))
			must(t, err)
			for range 3 { // each doubles the memtable
				writeOne(t, s)
				must(t, s.inst.DB().Flush())
			}
			e.cache.mu.Lock()
			e.cache.mu.lru.shrunk = time.Time{} // the pause is over
			e.cache.mu.Unlock()
			e.Release(s)
			most = max(most, e.env.shared.Memory.Memtables())
		}
		if most == 0 {
			t.Fatalf("round %d: nothing is charged", round)
		}
	}
	if most > 2*total {
		t.Errorf("memtables took %d bytes, more than %d", most, 2*total)
	}
}

// TestMemoryOfManySmallStores: where the first memtables of open stores take more than all
// should, one that was written to stays open.
func TestMemoryOfManySmallStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stores = 24
		e, stop := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: stores, CacheBytes: stores * instance.IdleMemTable / 4})
		defer stop()
		for i := range stores {
			must(t, e.Create(storeName(i), CreateOptions{}))
			s, err := e.Acquire(storeName(i))
			must(t, err)
			writeOne(t, s)
			e.Release(s)
		}
		s, err := e.Acquire(storeName(0))
		must(t, err)
		must(t, s.inst.DB().Flush())
		<-time.After(memoryPause)
		synctest.Wait() // while it is busy it would stay open for that
		e.Release(s)
		again, err := e.Acquire(storeName(0))
		must(t, err)
		if again != s {
			t.Error("it was closed after one write")
		}
		e.Release(again)
	})
}
