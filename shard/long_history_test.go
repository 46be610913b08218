package shard

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/storage"
	"divan/storage/doc"
	"divan/storage/fault"
)

// grow edits a document many times, each edit on top of the last one's revision, in
// one request or several.
func (r *run) grow() {
	id := r.id()
	n := rapid.IntRange(1, 80).Draw(r.rt, "revisions")
	perRequest := rapid.SampledFrom([]int{1, 3, 40, 80}).Draw(r.rt, "per request")
	noPath := rapid.Bool().Draw(r.rt, "no path")
	deletes := rapid.IntRange(0, 9).Draw(r.rt, "deletes") == 0
	parent, before, alive := doc.Rev{}, doc.Rev{}, true
	if d := r.m.docs[id]; d != nil {
		parent = d.leaves()[0]
		alive = !d.nodes[parent].deleted
		deletes = deletes && len(d.leaves()) == 1 // another leaf would win then
	}
	for n > 0 {
		edits := make([]Edit, min(n, perRequest))
		n -= len(edits)
		for i := range edits {
			r.i++
			e := Edit{ID: id, Deleted: deletes && alive && r.i%5 == 0, Body: fmt.Appendf(nil, `{"i":%d}`, r.i)}
			if alive {
				e.Parent = parent
			}
			before, parent = parent, doc.Rev{Pos: parent.Pos + 1, ID: doc.NewRevID(e.Deleted, parent, e.Body, nil)}
			alive = !e.Deleted
			edits[i] = e
		}
		got, err := r.n.Decide(context.Background(), DecideRequest{
			Copy: copyName, NewEdits: true, NoPath: noPath, Edits: edits, Limits: Limits{Revs: r.m.limit},
		})
		if err != nil {
			r.rt.Fatalf("update: %v", err)
		}
		want, _ := r.m.update(true, edits)
		for i := range edits {
			if got[i].Err != nil || got[i].Rev != want[i].rev {
				r.rt.Fatalf("edit %d of %q on %s: %v %v, want %v", i, id, edits[i].Parent, got[i].Rev, got[i].Err, want[i])
			}
		}
		if last := got[len(got)-1]; !noPath && last.Rev == parent {
			want := r.m.docs[id].lineage(parent)
			if len(want) == 1 && !before.IsZero() { // the limit is 1, and other copies need the parent
				want = append(want, before)
			}
			r.equal("path", fmt.Sprint(pathOf(last.Path)), fmt.Sprint(want))
		}
	}
}

// TestLongHistories is TestAgainstModel for documents with so many revisions that older
// ones lie in blocks, and limits that change.
func TestLongHistories(t *testing.T) {
	limits := []int{1, 10, 40, 60, 64, 70, 100, 1000}
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{rt: rt, m: &model{docs: map[string]*modelDoc{}, limit: rapid.SampledFrom(limits).Draw(rt, "limit")}, ids: []string{"a", "b"}}
		r.n = open(t, newFS(), Options{})
		r.n.create(CreateOptions{ID: 7})
		defer func() { r.n.stop() }()
		rt.Repeat(map[string]func(*rapid.T){
			"grow":        func(rt *rapid.T) { r.rt = rt; r.grow() },
			"grow again":  func(rt *rapid.T) { r.rt = rt; r.grow() },
			"interactive": func(rt *rapid.T) { r.rt = rt; r.update(true) },
			"replicated":  func(rt *rapid.T) { r.rt = rt; r.update(false) },
			"purge":       func(rt *rapid.T) { r.rt = rt; r.purge() },
			"compact":     func(rt *rapid.T) { r.rt = rt; r.compact() },
			"limit":       func(rt *rapid.T) { r.m.limit = rapid.SampledFrom(limits).Draw(rt, "limit") },
			"reopen": func(*rapid.T) {
				fs := r.n.fs
				r.n.stop()
				r.n = open(t, fs, Options{})
			},
			"": func(rt *rapid.T) {
				r.rt = rt
				for _, id := range r.m.ids() {
					r.compareDoc(id, r.m.docs[id])
				}
				r.n.check()
			},
		})
		r.n.check()
	})
}

// TestCloneLongHistories clones documents whose history lies in blocks, again and again.
func TestCloneLongHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &run{rt: rt, m: &model{docs: map[string]*modelDoc{}, limit: 100}, ids: cloneIDs[:2]}
		r.n = open(t, newFS(), Options{})
		r.n.create(CreateOptions{ID: 7})
		r.n.createHalves(CreateOptions{ID: 8})
		defer func() { r.n.stop() }()
		clone := func() {
			r.n.cloneHalves(r.rt, rapid.SampledFrom([]int{1, 5000, 0}).Draw(r.rt, "step"))
			r.n.compareHalves(r.rt)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"grow":       func(rt *rapid.T) { r.rt = rt; r.grow() },
			"grow again": func(rt *rapid.T) { r.rt = rt; r.grow() },
			"replicated": func(rt *rapid.T) { r.rt = rt; r.update(false) },
			"purge all":  func(rt *rapid.T) { r.rt = rt; r.purgeDoc() },
			"compact":    func(rt *rapid.T) { r.rt = rt; r.compact() },
			"clone":      func(rt *rapid.T) { r.rt = rt; clone() },
		})
		r.rt = rt
		clone()
	})
}

// TestEditWritesTip: an edit of a document with a thousand revisions writes some dozens of
// them, no matter how many the limit cuts off meanwhile, and reads no more.
func TestEditWritesTip(t *testing.T) {
	n := open(t, newFS(), Options{})
	n.create(CreateOptions{ID: 7})
	defer n.stop()
	var parent doc.Rev
	grow := func(count, limit int) {
		for range count {
			e := Edit{ID: "a", Parent: parent, Body: []byte(`{}`)}
			res, err := n.Decide(context.Background(), DecideRequest{
				Copy: copyName, NewEdits: true, NoPath: true, Edits: []Edit{e}, Limits: Limits{Revs: limit},
			})
			if err != nil || res[0].Err != nil {
				t.Fatal(err, res)
			}
			parent = res[0].Rev
		}
	}
	grow(1300, 1000)
	stored := func(floor uint64, revs int) {
		n.acquire(t, copyName, func(s *storage.Store) {
			tip, _, err := s.Reader().Tip("a")
			if err != nil || !tip.Partial || tip.Below.Floor != floor || tip.Tree.Len() > 47 {
				t.Fatalf("%v: partial %v, %+v, %d revisions in the record", err, tip.Partial, tip.Below, tip.Tree.Len())
			}
			whole, _, err := s.Reader().Record("a")
			if err != nil || whole.Tree.Len() != revs {
				t.Fatalf("%v: %d revisions, want %d", err, whole.Tree.Len(), revs)
			}
		})
		n.check()
	}
	stored(301, 1000)
	grow(1, 500)
	stored(802, 500)
}

// TestDamagedHistory: a block that is gone fails the requests that need it, and no other.
func TestDamagedHistory(t *testing.T) {
	n := open(t, newFS(), Options{})
	n.create(CreateOptions{ID: 7})
	defer func() { n.stop() }()
	var parent doc.Rev
	edit := func(id string, e Edit) error {
		e.ID = id
		res, err := n.Decide(context.Background(), DecideRequest{
			Copy: copyName, NewEdits: e.Path.Start == 0, NoPath: true, Edits: []Edit{e}, Limits: Limits{Revs: 1000},
		})
		if err == nil {
			parent = res[0].Rev
			if res[0].Err != nil {
				t.Errorf("a refusal: %v", res[0].Err)
			}
		}
		return err
	}
	for range 100 {
		if err := edit("a", Edit{Parent: parent, Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	n.acquire(t, copyName, func(s *storage.Store) {
		tip, _, err := s.Reader().Tip("a")
		if err != nil {
			t.Fatal(err)
		}
		b := s.NewBatch()
		b.Remove(&tip)
		b.Put(nil, &tip) // Partial: its blocks are taken to be there
		c, err := b.Apply()
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if err := edit("a", Edit{Parent: parent, Body: []byte("{}")}); err != nil {
		t.Errorf("an edit of the newest revision: %v", err)
	}
	for _, req := range []OpenRequest{{ID: "a", Rev: parent}, {ID: "a", Conflicts: true}, {ID: "a"}} {
		if d, err := n.get(req); err != nil || d.Rev != parent {
			t.Errorf("what the record has: %v, %v", d, err)
		}
	}
	if _, err := n.get(OpenRequest{ID: "a", Revs: true}); !fault.Is(err, fault.Corruption) {
		t.Errorf("the whole history: %v", err)
	}
	branch := doc.Path{Start: 2, IDs: []string{"x", "y"}}
	if err := edit("a", Edit{Path: branch, Body: []byte("{}")}); !fault.Is(err, fault.Corruption) {
		t.Errorf("a branch: %v", err)
	}
	newest := parent
	parent = doc.Rev{}
	if err := edit("b", Edit{Body: []byte("{}")}); err != nil {
		t.Errorf("another document: %v", err)
	}

	// A validation function is shown the whole history: the request ends with an error.
	fs := n.fs
	n.stop()
	n = open(t, fs, Options{Validator: func(context.Context, string, string) (Validate, error) {
		return func(context.Context, ValidateRequest) error { return nil }, nil
	}})
	if err := edit("a", Edit{Parent: newest, Body: []byte("{}")}); !fault.Is(err, fault.Corruption) {
		t.Errorf("an edit that is validated: %v", err)
	}
	if err := edit("b", Edit{Parent: parent, Body: []byte(`{"n":1}`)}); err != nil {
		t.Errorf("another document that is validated: %v", err)
	}
}

// TestLimitLoweredByOne: a known edit that names more ancestors than there are is decided as
// where the history is whole.
func TestLimitLoweredByOne(t *testing.T) {
	var answers []EditResult
	for _, copyID := range []uint64{0, 7} { // without blocks, with
		n := open(t, newFS(), Options{})
		n.create(CreateOptions{ID: copyID})
		var parent doc.Rev
		path := doc.Path{}
		for range 130 {
			res, err := n.Decide(context.Background(), DecideRequest{
				Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "a", Parent: parent, Body: []byte("{}")}}, Limits: Limits{Revs: 100},
			})
			if err != nil || res[0].Err != nil {
				t.Fatal(err, res)
			}
			parent = res[0].Rev
			path = doc.Path{Start: parent.Pos, IDs: append([]string{parent.ID}, path.IDs...)}
		}
		res, err := n.Decide(context.Background(), DecideRequest{
			Copy: copyName, Edits: []Edit{{ID: "a", Path: path, Body: []byte("{}")}}, Limits: Limits{Revs: 99},
		})
		if err != nil || res[0].Err != nil || len(res[0].Path.IDs) != 99 {
			t.Fatalf("copy %d: %v, %d ids", copyID, err, len(res[0].Path.IDs))
		}
		answers = append(answers, res[0])
		if info := n.info(); info.Seq != 131 {
			t.Errorf("copy %d is at sequence %d", copyID, info.Seq)
		}
		n.check()
		n.stop()
	}
	if !slices.Equal(answers[0].Path.IDs, answers[1].Path.IDs) {
		t.Errorf("%v, with blocks %v", answers[0], answers[1])
	}
}

// TestHistoryReadOnce: edits of one document in one request that each need its whole history
// read it once.
func TestHistoryReadOnce(t *testing.T) {
	n := open(t, newFS(), Options{})
	n.create(CreateOptions{ID: 7})
	defer n.stop()
	var parent doc.Rev
	for range 100 {
		res := n.edits(true, Edit{ID: "a", Parent: parent, Body: []byte("{}")})
		n.must(res[0])
		parent = res[0].Rev
	}
	n.acquire(t, copyName, func(s *storage.Store) {
		tip, _, err := s.Reader().Tip("a")
		if err != nil {
			t.Fatal(err)
		}
		from := &countingSource{historySource: stored{store: s}}
		state := newDocState("a", &tip)
		for range 3 {
			if p, err := state.path(parent, from); err != nil || len(p.IDs) != 100 {
				t.Fatalf("%v, %d ids", err, len(p.IDs))
			}
		}
		state = state.clone()
		if err := state.widen(from); err != nil || state.tree.Len() != 100 || from.n != 1 {
			t.Fatalf("%v, %d revisions, read %d times", err, state.tree.Len(), from.n)
		}
	})
}

type countingSource struct {
	historySource
	n int
}

func (c *countingSource) history(id string, below doc.Below) (doc.Tree, error) {
	c.n++
	return c.historySource.history(id, below)
}
