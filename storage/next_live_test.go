package storage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"divan/storage/keyspace"
)

// blockIDs are ids in their order, every tenth of which opens a top-level block.
func blockIDs(n int) []string {
	var top, plain []string
	for i := 0; len(top) < n/10; i++ {
		id := fmt.Sprintf("k%07d", i*7919%10000000)
		switch h := keyspace.BorderHash(id); {
		case h&keyspace.TopMask == 0:
			top = append(top, id)
		case h&keyspace.LowMask != 0 && len(plain) < n-n/10:
			plain = append(plain, id)
		}
	}
	ids := slices.Concat(top, plain)
	slices.Sort(ids)
	return ids
}

// TestNextLiveIsAScan: after any deletions and purges NextLive shows the same
// live rows as a scan of the same moment, in both directions and any range.
func TestNextLiveIsAScan(t *testing.T) {
	ids := blockIDs(1500) // in three chunks or more
	rapid.Check(t, func(t *rapid.T) {
		e, stop := mustEngine(t, vfs.NewMem())
		defer stop()
		if err := e.Create(testStore, CreateOptions{CopyID: 1, Small: true}); err != nil {
			t.Fatalf("Create: %v", err)
		}
		s, err := e.Acquire(testStore)
		if err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		defer e.Release(s)
		w := newEdits()
		b := s.NewBatch()
		for lo := 0; lo < len(ids); {
			run := rapid.SampledFrom([]int{1, 3, 100, 300, 1500}).Draw(t, "run")
			deleted := rapid.IntRange(0, 3).Draw(t, "live") > 0
			for ; run > 0 && lo < len(ids); run-- {
				w.put(b, edit{id: ids[lo], deleted: deleted})
				lo++
			}
		}
		commit(t, b)
		b = s.NewBatch()
		for range rapid.IntRange(0, 20).Draw(t, "more") {
			switch id := rapid.SampledFrom(ids).Draw(t, "id"); {
			case w.recs[id] == nil:
			case rapid.Bool().Draw(t, "purged"):
				w.purge(b, id)
			default:
				w.put(b, edit{id: id})
			}
		}
		commit(t, b)
		snap, err := s.Snapshot()
		if err != nil {
			t.Fatalf("Snapshot: %v", err)
		}
		defer func() { _ = snap.Close() }() // read only: nothing to lose
		b = s.NewBatch()                    // not of that moment
		for _, id := range ids {
			w.put(b, edit{id: id, deleted: w.recs[id] != nil && !w.recs[id].Deleted})
		}
		commit(t, b)
		for range 4 {
			r := Range{Desc: rapid.Bool().Draw(t, "desc")}
			if rapid.Bool().Draw(t, "bounded") {
				r.Lo, r.Hi = rapid.SampledFrom(ids).Draw(t, "lo"), rapid.SampledFrom(ids).Draw(t, "hi")
			}
			want, got := liveRows(t, snap, r, (*Docs).Next), liveRows(t, snap, r, (*Docs).NextLive)
			if !slices.Equal(got, want) {
				t.Fatalf("%+v: %d rows %q, a scan has %d %q", r, len(got), got, len(want), want)
			}
		}
	})
}

// liveRows lists the live documents of a range.
func liveRows(t fatalist, snap *Snapshot, r Range, next func(*Docs) bool) (ids []string) {
	t.Helper()
	it, _, err := snap.Listing(r, len(r.Lo)%2 == 0)
	if err != nil {
		t.Fatalf("Listing: %v", err)
	}
	for ok := it.First(); ok; ok = next(it) {
		if !it.Head().Deleted {
			ids = append(ids, string(it.ID()))
		}
	}
	if err := it.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return ids
}

// TestNextLivePassesOverTheDead: to find a live document, few of the deleted ones
// around it are read.
func TestNextLivePassesOverTheDead(t *testing.T) {
	ids := blockIDs(8000)
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	b := s.NewBatch()
	for i, id := range ids {
		w.put(b, edit{id: id, deleted: i != len(ids)/2})
	}
	commit(t, b)
	snap, err := s.Snapshot()
	must(t, err)
	for _, desc := range []bool{false, true} {
		it, err := snap.Heads(Range{Desc: desc})
		must(t, err)
		found := 0
		for ok := it.First(); ok; ok = it.NextLive() {
			if !it.Head().Deleted {
				found++
			}
		}
		stats := it.it.Stats()
		read := stats.ForwardStepCount[pebble.InterfaceCall] + stats.ReverseStepCount[pebble.InterfaceCall]
		if found != 1 || read > 4*maxDeletedRun {
			t.Errorf("descending %v: %d live, %d rows read of %d", desc, found, read, len(ids))
		}
		must(t, it.Close())
	}
	must(t, snap.Close())
}
