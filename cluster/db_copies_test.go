package cluster

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// commit puts a database on all nodes into the map, as the leader does for a
// request that hears no answer.
func (w *world) commit(id [16]byte, name string) *meta.Database {
	w.tb.Helper()
	m, err := w.meta.CreateDatabase(w.tb.Context(), meta.Create{Name: name, ID: id, Q: 2, N: len(w.locals)})
	if err != nil {
		w.tb.Fatal(err)
	}
	return m
}

// idOf returns the id that the map has for a copy.
func (w *world) idOf(name, node string) uint64 {
	w.tb.Helper()
	_, one, ok := w.meta.CopyIn(name, node)
	if !ok {
		w.tb.Fatalf("%s is not on %s", name, node)
	}
	return one.ID
}

// change gives a copy another state.
func (w *world) change(name, node string, to ring.State, filled ...uint64) {
	w.tb.Helper()
	db, one, ok := w.meta.CopyIn(name, node)
	if !ok {
		w.tb.Fatalf("%s is not on %s", name, node)
	}
	err := w.meta.ChangeCopies(w.tb.Context(), []meta.CopyChange{{Name: db.Name, ID: db.ID, Change: ring.Change{Copy: one.ID, To: to, Filled: filled}}})
	if err != nil {
		w.tb.Fatal(err)
	}
	if _, now, _ := w.meta.CopyIn(name, node); now.State != to {
		w.tb.Fatalf("%s on %s is %s", name, node, now.State)
	}
}

// joinAgain has a node lose a copy, and the copy join.
func (w *world) joinAgain(name, node string) {
	w.tb.Helper()
	if err := w.locals[node].Copies.Drop(w.tb.Context(), name); err != nil {
		w.tb.Fatal(err)
	}
	w.change(name, node, ring.StateJoining)
	if err := w.locals[node].Copies.Create(w.tb.Context(), name, shard.CreateOptions{ID: w.idOf(name, node)}); err != nil {
		w.tb.Fatal(err)
	}
}

// join does what Run does with copies of this node that are gone: they are proposed to join,
// and made.
func (w *world) join() {
	w.tb.Helper()
	k := &reconciler{c: w.Coordinator}
	if err := k.sweep(w.tb.Context()); err != nil {
		w.tb.Fatal(err)
	}
	if err := w.Coordinator.join(w.tb.Context(), w.missing.Take()); err != nil {
		w.tb.Fatal(err)
	}
	if err := k.sweep(w.tb.Context()); err != nil {
		w.tb.Fatal(err)
	}
}

// wantCopies checks that the copies of a database on the nodes are there, and their
// state.
func (w *world) wantCopies(m *meta.Database, state ring.State, nodes ...string) {
	w.tb.Helper()
	for _, node := range nodes {
		for _, name := range m.CopiesOn(node) {
			_, one, _ := w.meta.CopyIn(name, node)
			if id, err := w.locals[node].Copies.ID(name); err != nil || id != one.ID {
				w.tb.Errorf("%s: %d, %v, want %d", node, id, err, one.ID)
			}
			if one.State != state {
				w.tb.Errorf("%s: %s is %s", node, name, one.State)
			}
		}
	}
}

// TestCopiesAreMadeWhenAsked: this node hears of a database that another node creates. It makes its
// copies by itself, or for the first request, whichever comes first; they are complete, and nothing
// is waited for.
func TestCopiesAreMadeWhenAsked(t *testing.T) {
	for _, still := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, setup{nodes: 3, still: still})
			synctest.Wait()
			begun := time.Now()
			m := w.commit(meta.NewDatabaseID(), "pond")
			put(t, w.open("pond"), "frog", doc.Rev{}, `{}`)
			if ids, _, _ := list(t, w.open("pond"), DocsQuery{Limit: NoLimit}); ids != "frog" {
				t.Errorf("listed %q", ids)
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("the copies were waited for for %s", took)
			}
			w.settleWrites()
			if still { // no request has asked for the other range
				if err := (&reconciler{c: w.Coordinator}).sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			w.wantCopies(m, ring.StateFull, node1)
		})
	}
}

// TestLostDisk: a node that has made its copies once, and has none, and nothing that tells
// of them, does not take empty ones for them.
func TestLostDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		d := w.create("pond", CreateOptions{Q: 2})
		put(t, d, "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		k := &reconciler{c: w.Coordinator}
		if err := k.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range d.meta.CopiesOn(node1) {
			if err := w.locals[node1].Copies.Drop(t.Context(), name); err != nil { // nothing tells that it was here
				t.Fatal(err)
			}
		}
		for range 2 {
			if got, err := d.Open(t.Context(), OpenOptions{ID: "frog", R: 1}); err != nil || got.Rev.Pos != 1 {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := w.open("pond").Info(t.Context()); err != nil {
				t.Error(err)
			}
			w.join()
			w.wantCopies(d.meta, ring.StateJoining, node1)
		}
	})
}

// TestReplacedCopyIsNoNewOne: a copy in the place of another one has to be filled, however
// new the database is.
func TestReplacedCopyIsNoNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		if err := w.meta.SetDraining(t.Context(), node1, true); err != nil {
			t.Fatal(err)
		}
		d := w.create("pond", CreateOptions{Q: 1, N: 2})
		put(t, d, "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		if err := w.meta.ReplaceNode(t.Context(), node3, node1, false); err != nil {
			t.Fatal(err)
		}
		d = w.open("pond")
		if got, err := d.Open(t.Context(), OpenOptions{ID: "frog", R: 1}); err != nil || got.Rev.Pos != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		w.join()
		w.wantCopies(d.meta, ring.StateJoining, node1)
	})
}

// TestAskedForAnotherCopy: a node makes no copy that the map does not have there.
func TestAskedForAnotherCopy(t *testing.T) {
	w := start(t, setup{nodes: 2, still: true})
	m := w.commit(meta.NewDatabaseID(), "pond")
	t1 := newDB(w.Coordinator, m).routing.Routes[0].Near[0]
	open := func(to wire.Addressee) error {
		own := replica.Copy{At: replica.NewLocal(w.Held()), To: to}
		_, err := replica.Open.On(t.Context(), own, shard.OpenRequest{Copy: t1.Name, ID: "frog"})
		return err
	}
	for _, id := range []uint64{t1.ID + 1, t1.ID + 100, 1} {
		to := replica.Of(nil, t1).To
		to.Copy = id
		if err := open(to); !fault.Is(err, fault.NoCopy) {
			t.Errorf("copy %d: %v", id, err)
		}
	}
	if w.locals[node1].Copies.Has(t1.Name) {
		t.Error("it was made")
	}
	if err := open(replica.Of(nil, t1).To); !fault.Is(err, fault.NotFound) || !w.locals[node1].Copies.Has(t1.Name) {
		t.Errorf("the one that it has: %v", err)
	}
}

// TestLateCopyIsFilled: others may have been written to since a database was created, so a
// node that makes its copy late does not take an empty one for full.
func TestLateCopyIsFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		m := w.commit(meta.NewDatabaseID(), "pond")
		put(t, newDB(w.Coordinator, m).without(node1), "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		<-time.After(newFor)
		d := w.open("pond")
		if got, err := d.Open(t.Context(), OpenOptions{ID: "frog", R: 1}); err != nil || got.Rev.Pos != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if ids, _, _ := list(t, d, DocsQuery{Limit: NoLimit}); ids != "frog" {
			t.Errorf("listed %q", ids)
		}
		w.join()
		w.wantCopies(m, ring.StateJoining, node1)
	})
}

// TestLostDiskOfOnlyCopies: a copy that no other node has is lost, also when nothing but the
// metadata tells that it was here.
func TestLostDiskOfOnlyCopies(t *testing.T) {
	w := start(t, setup{still: true})
	d := w.create("pond", CreateOptions{Q: 1})
	put(t, d, "frog", doc.Rev{}, `{}`)
	k := &reconciler{c: w.Coordinator}
	if err := k.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := d.meta.CopiesOn(node1)[0]
	if err := w.locals[node1].Copies.Drop(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.Open(t.Context(), OpenOptions{ID: "frog"}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("an empty copy answers: %v", err)
		}
		if err := k.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.LostCopies(); len(got) != 1 || got[0] != name {
		t.Errorf("lost are %q", got)
	}
	if err := w.AcceptLoss(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	put(t, w.open("pond"), "frog", doc.Rev{}, `{}`)
}

// TestDroppedCopyIsNotMadeAgain: another node has heard of a deletion, and this one has
// not.
func TestDroppedCopyIsNotMadeAgain(t *testing.T) {
	w := start(t, setup{nodes: 2, still: true})
	d := w.create("pond", CreateOptions{Q: 1})
	at := d.routing.Routes[0].Near[0]
	peers := replica.NewLocal(w.Held())
	if _, err := replica.Drop.On(t.Context(), replica.Of(peers, at), at.Name); err != nil {
		t.Fatal(err)
	}
	_, err := replica.Open.On(t.Context(), replica.Of(peers, at), shard.OpenRequest{Copy: at.Name, ID: "frog"})
	if !fault.Is(err, fault.NoCopy) {
		t.Errorf("it is there: %v", err)
	}
	if err := (&reconciler{c: w.Coordinator}).sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.locals[node1].Copies.Has(at.Name) {
		t.Error("it was made again")
	}
}

// TestLossOfWhatOthersHave: it is not accepted, as the copy is filled from them.
func TestLossOfWhatOthersHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		d := w.create("pond", CreateOptions{Q: 1})
		put(t, d, "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		name := d.meta.CopiesOn(node1)[0]
		refused := func(when string) {
			t.Helper()
			if err := w.AcceptLoss(t.Context(), name); !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Reason(err), "is filled from") {
				t.Errorf("%s: %v", when, err)
			}
		}
		if err := (&reconciler{c: w.Coordinator}).sweep(t.Context()); err != nil { // it is noted that it was made
			t.Fatal(err)
		}
		if err := w.locals[node1].Copies.Drop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		refused("before it joins")
		if w.locals[node1].Copies.Has(name) {
			t.Error("it was made")
		}
		w.join()
		refused("while it joins")
		if got, err := d.Open(t.Context(), OpenOptions{ID: "frog", R: 1}); err != nil || got.Rev.Pos != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
