package small

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"
)

// TestReclaimPauses: what was removed, or compacted, is told of once, so long after the end of the time before.
func TestReclaimPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reclaim
		r.Start()
		check := func(full, due, urgent bool) {
			t.Helper()
			if d, u := r.TakeRemoved(full); d != due || u != urgent {
				t.Errorf("due %t, urgent %t", d, u)
			}
		}
		check(true, false, false)
		<-time.After(RemovedEvery)
		check(false, true, false)
		check(false, false, false)
		<-time.After(2 * RemovedEvery) // as long as it takes
		r.Removed(true)
		r.EndRemoved(true, false)
		check(true, false, false)
		<-time.After(removedFull)
		check(false, true, true)
		r.EndRemoved(false, true)
		<-time.After(removedFull)
		check(false, true, true)
		r.EndRemoved(true, true)
		<-time.After(RemovedEvery)
		check(true, false, false) // nothing was removed
	})
}

// TestCompactedStores: some are taken at a time, each once; of very many none is remembered, and all goes with what was
// removed.
func TestCompactedStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reclaim
		note := func(n int) {
			for i := range n {
				var store [16]byte
				binary.BigEndian.PutUint32(store[:], uint32(i))
				r.Compacted(store)
			}
		}
		note(maxTaken + 1)
		taken := map[string]int{}
		for range 3 {
			spans := r.TakeCompacted()
			for _, span := range spans {
				taken[string(span.Start)]++
			}
			if len(spans) > maxTaken {
				t.Errorf("%d are taken at once", len(spans))
			}
			<-time.After(CompactedEvery)
			r.EndCompacted(true)
			if len(r.TakeCompacted()) > 0 {
				t.Error("taken without a pause")
			}
			<-time.After(CompactedEvery)
		}
		if len(taken) != maxTaken+1 {
			t.Errorf("%d were taken of %d", len(taken), maxTaken+1)
		}
		for store, n := range taken {
			if n != 1 {
				t.Errorf("%x was taken %d times", store, n)
			}
		}
		if due, _ := r.TakeRemoved(true); due {
			t.Error("something was removed")
		}
		note(5 * maxCompacted)
		if len(r.compacted) > maxCompacted {
			t.Errorf("%d are remembered", len(r.compacted))
		}
		if due, _ := r.TakeRemoved(true); !due {
			t.Error("what is not remembered is lost")
		}
		r.EndCompacted(false)
		if due, _ := r.TakeRemoved(true); !due {
			t.Error("what failed is lost")
		}
	})
}
