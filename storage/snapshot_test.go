package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"divan/storage/doc"
	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
	"divan/storage/storagetest"
)

// TestSnapshotIsOneMoment: rows, changes, counters and aggregates of a snapshot
// belong together while batches go on.
func TestSnapshotIsOneMoment(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true, Partitioned: true})
	const perMoment = 100 // a look that is slow would have ever more to look at
	writes := make(chan struct{}, perMoment)
	var wg sync.WaitGroup
	wg.Go(func() {
		w := newEdits()
		rng := rand.New(rand.NewPCG(1, 2))
		for i := 0; ; i++ {
			if _, more := <-writes; !more {
				return
			}
			b := s.NewBatch()
			for range 3 {
				id := fmt.Sprintf("doc%04d", rng.IntN(2000))
				if w.recs[id] != nil && rng.IntN(9) == 0 {
					w.purge(b, id)
					continue
				}
				w.put(b, edit{id: id, body: fmt.Appendf(nil, `{"n":%d}`, i), deleted: rng.IntN(5) == 0})
			}
			commit(t, b)
		}
	})
	for range 150 {
		for len(writes) < perMoment {
			writes <- struct{}{}
		}
		oneMoment(t, s)
	}
	close(writes)
	wg.Wait()
	checkStore(t, s)
}

func oneMoment(t *testing.T, s *Store) {
	t.Helper()
	snap, err := s.Snapshot()
	must(t, err)
	it, err := snap.Docs(Range{})
	must(t, err)
	var got Counters
	for ok := it.First(); ok; ok = it.Next() {
		sums := format.HeadSums(it.Head())
		got.Live += uint64(sums.Live)
		got.Deleted += uint64(sums.Deleted)
		got.External += sums.External
		got.Active += sums.Active
	}
	must(t, it.Close())
	changes, err := snap.Changes(SeqRange{})
	must(t, err)
	n := uint64(0)
	for ok := changes.First(); ok; ok = changes.Next() {
		n++
	}
	must(t, changes.Close())
	want := snap.Counters()
	got.Seq, got.PurgeSeq, got.PurgeTrimmed = want.Seq, want.PurgeSeq, want.PurgeTrimmed
	if got != want || n != want.Live+want.Deleted {
		t.Fatalf("rows give %+v, %d changes, the counters are %+v", got, n, want)
	}
	sums, err := snap.Sums("", "zzz")
	must(t, err)
	if sums != snap.total() {
		t.Fatalf("sums over all ids are %+v, the totals %+v", sums, snap.total())
	}
	half, err := snap.CountChanges(want.Seq / 2)
	must(t, err)
	exact, err := countSeqs(snap.snap, want.Seq/2+1, want.Seq+1)
	must(t, err)
	if half != exact {
		t.Fatalf("%d changes after %d, counted %d", half, want.Seq/2, exact)
	}
	must(t, snap.Close())
}

// TestCountsAtSize compares the aggregates with counting in stores of some
// thousand documents, filled in different orders.
func TestCountsAtSize(t *testing.T) {
	storagetest.SkipShort(t)
	const n = 12_000
	for _, order := range []string{"ascending", "descending", "random"} {
		t.Run(order, func(t *testing.T) {
			s := newStore(t, CreateOptions{CopyID: 1, Small: true})
			perm := rand.New(rand.NewPCG(3, 4)).Perm(n)
			w := newEdits()
			putDocs(t, s, w, docsOf{n, 100, func(i int) string {
				switch order {
				case "descending":
					i = n - 1 - i
				case "random":
					i = perm[i]
				}
				return numbered(i)
			}})
			b := s.NewBatch()
			for i := range n / 10 {
				w.put(b, edit{id: numbered(i * 7 % n), deleted: i%2 == 0})
			}
			commit(t, b)
			checkStore(t, s)
			if got := len(s.states.applied().docs.list()); order == "random" && got < 2 {
				t.Errorf("%d top-level blocks", got)
			}
			snap, err := s.Snapshot()
			must(t, err)
			live := uint64(0)
			for i := range n {
				if i%97 == 0 {
					got, err := snap.CountDocs(numbered(i))
					if err != nil || got != live {
						t.Fatalf("CountDocs(%q) = %d, %v, want %d", numbered(i), got, err, live)
					}
				}
				if !w.recs[numbered(i)].Deleted {
					live++
				}
			}
			must(t, snap.Close())
		})
	}
}

// TestForgottenBorders: what the writer knows of borders may be forgotten
// between any two batches.
func TestForgottenBorders(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		putDocs(t, s, w, docsOf{200, 50, func(int) string { return fmt.Sprintf("%016x", rng.Uint64()) }})
		s.states.lowHeld.Add(maxLowHeld) // as if there were many more
	}
	checkStore(t, s)
	docs := s.states.applied().docs
	if left := docs.dropLow(s.states.lowHeld.Load()); left > maxLowHeld/2 {
		t.Errorf("%d blocks are left", left)
	}
}

// TestOldSequencesVanish: the aggregates do not grow with the number of edits.
func TestOldSequencesVanish(t *testing.T) {
	storagetest.SkipShort(t)
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	rec := func(seq uint64) *doc.Record {
		r := &doc.Record{ID: "a", Seq: seq, Winner: doc.Rev{Pos: 1, ID: "x"}}
		r.Tree.Merge(doc.Path{Start: 1, IDs: []string{"x"}}, doc.Node{Rev: r.Winner})
		return r
	}
	var old *doc.Record
	const last = 3<<keyspace.TopShift + 10
	for seq := uint64(1); seq <= last; {
		b := s.NewBatch()
		for range 1000 {
			if seq > last {
				break
			}
			next := rec(seq)
			b.Put(old, next)
			old = next
			seq++
		}
		commit(t, b)
	}
	checkStore(t, s)
	if n := len(s.states.applied().seqs.list()); n != 2 { // the empty border, and that of the last
		t.Errorf("%d top-level blocks are left", n)
	}
	n := 0
	must(t, records.Each(s.inst.DB(), keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelLow, ""), keyspace.AppendAgg(nil, keyspace.AggSeqs, keyspace.LevelLow+1, ""),
		func(_, _ []byte) error { n++; return nil }))
	if n > 2 {
		t.Errorf("%d low-level blocks are left", n)
	}
}

// TestCountChangesAcrossRemovedBlocks: the count is right after any sequence,
// also after those whose top-level block has lost its last entry.
func TestCountChangesAcrossRemovedBlocks(t *testing.T) {
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
		for range rapid.IntRange(1, 20).Draw(t, "batches") {
			w.seq += rapid.SampledFrom([]uint64{0, 200, 1 << keyspace.TopShift, 3 << keyspace.TopShift}).Draw(t, "leap")
			b := s.NewBatch()
			for range rapid.IntRange(1, 3).Draw(t, "edits") {
				w.put(b, edit{id: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id")})
			}
			commit(t, b)
		}
		checkStore(t, s)
		snap, err := s.Snapshot()
		if err != nil {
			t.Fatalf("Snapshot: %v", err)
		}
		defer func() { _ = snap.Close() }() // read only: nothing to lose
		for after := uint64(0); after <= w.seq; after += 1 << (keyspace.TopShift - 2) {
			want := uint64(0)
			for _, rec := range w.recs {
				if rec.Seq > after {
					want++
				}
			}
			if got, err := snap.CountChanges(after); err != nil || got != want {
				t.Fatalf("CountChanges(%d) = %d, %v, want %d", after, got, err, want)
			}
		}
	})
}

// TestSeek: iterators go to any row in both directions.
func TestSeek(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	putDocs(t, s, w, docsOf{10, 10, func(i int) string { return fmt.Sprintf("k%d", i*2) }})
	snap, err := s.Snapshot()
	must(t, err)
	for _, c := range []struct {
		desc bool
		seek string
		want string
	}{
		{false, "k4", "k4 k6 k8"},
		{false, "k5", "k6 k8"},
		{true, "k4", "k4 k2"},
		{true, "k5", "k4 k2"},
		{true, "", ""},
		{false, "z", ""},
	} {
		it, err := snap.Docs(Range{Lo: "k2", Hi: "k9", Desc: c.desc})
		must(t, err)
		var got []string
		for ok := it.Seek(c.seek); ok; ok = it.Next() {
			got = append(got, string(it.ID()))
		}
		must(t, it.Close())
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("seek %q, descending %v: %q, want %q", c.seek, c.desc, got, c.want)
		}
	}
	must(t, snap.Close())
}

// TestLocalsAreApart: local documents do not show among the others.
func TestLocalsAreApart(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	b := s.NewBatch()
	b.PutLocal("_local/b", []byte("2"))
	b.PutLocal("_local/a", []byte("1"))
	commit(t, b)
	snap, err := s.Snapshot()
	must(t, err)
	it, err := snap.Locals(Range{Desc: true})
	must(t, err)
	var got string
	for ok := it.First(); ok; ok = it.Next() {
		got += string(it.ID()) + "=" + string(it.Value()) + " "
	}
	must(t, it.Close())
	if got != "_local/b=2 _local/a=1 " {
		t.Errorf("locals: %q", got)
	}
	must(t, snap.Close())
	if c := s.Counters(); c != (Counters{}) {
		t.Errorf("counters are %+v", c)
	}
	text, ok, err := s.Reader().Local("_local/a")
	if !ok || err != nil || string(text) != "1" {
		t.Errorf("Local: %q, %v, %v", text, ok, err)
	}
}

// TestDiscard: a batch that is given up leaves nothing.
func TestDiscard(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	w := newEdits()
	putDocs(t, s, w, docsOf{5, 5, numbered})
	before := s.Counters()
	b := s.NewBatch()
	if !b.Empty() || b.Size() == 0 {
		t.Errorf("a new batch: empty %v, %d bytes", b.Empty(), b.Size())
	}
	newEdits().put(b, edit{id: "never"})
	if b.Empty() {
		t.Error("a batch with an edit is empty")
	}
	b.Discard()
	b.Discard()
	if s.Counters() != before {
		t.Error("the counters moved")
	}
	putDocs(t, s, w, docsOf{5, 5, numbered})
	checkStore(t, s)
}

// TestListing: a listing with its count is the rows and the count for
// themselves, in a store that was just opened and with new blocks.
func TestListing(t *testing.T) {
	storagetest.SkipShort(t)
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(storeName(1), CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(storeName(1))
	must(t, err)
	w := newEdits()
	putDocs(t, s, w, docsOf{3000, 100, func(i int) string { return fmt.Sprintf("%04d", i*3) }})
	b := s.NewBatch()
	for i := range 300 {
		w.put(b, edit{id: fmt.Sprintf("%04d", i*30), deleted: true})
	}
	commit(t, b)
	e.Release(s)
	stop()
	e, _ = startEngine(t, Options{FS: fs})
	s, err = e.Acquire(storeName(1))
	must(t, err)
	defer e.Release(s)
	for round := range 3 {
		snap, err := s.Snapshot()
		must(t, err)
		if round == 2 {
			snap.state.docs.dropLow(0)
		}
		for i := 0; i < 9000; i += 83 {
			lo, hi := fmt.Sprintf("%04d", i), fmt.Sprintf("%04d", i+60)
			for _, r := range []Range{{Lo: lo}, {Lo: lo, Hi: hi}, {Hi: hi}, {Lo: lo, Hi: hi, Desc: true}, {Lo: lo, Desc: true}} {
				compareListing(t, snap, r, i%2 == 0)
			}
		}
		must(t, snap.Close())
		b := s.NewBatch()
		for i := range 200 {
			w.put(b, edit{id: fmt.Sprintf("%04d", (i*47+round)%9100), deleted: i%9 == 0})
		}
		commit(t, b)
		checkStore(t, s)
	}
	if s.states.lowHeld.Load() == 0 {
		t.Error("nothing is held in memory")
	}
}

func compareListing(t *testing.T, snap *Snapshot, r Range, bodies bool) {
	t.Helper()
	got, before, err := snap.Listing(r, bodies)
	must(t, err)
	want, err := snap.Heads(r)
	must(t, err)
	count := snap.Counters().Live
	if at := map[bool]string{false: r.Lo, true: r.Hi}[r.Desc]; at != "" || !r.Desc {
		count, err = snap.CountDocs(at)
		must(t, err)
	}
	if before != count {
		t.Errorf("%+v: %d before it, want %d", r, before, count)
	}
	more, wantMore := got.First(), want.First()
	for ; more && wantMore; more, wantMore = got.Next(), want.Next() {
		if string(got.ID()) != string(want.ID()) {
			t.Fatalf("%+v: %q, want %q", r, got.ID(), want.ID())
		}
	}
	if more != wantMore {
		t.Errorf("%+v: it ends too early or too late", r)
	}
	must(t, errors.Join(got.Close(), want.Close()))
}
