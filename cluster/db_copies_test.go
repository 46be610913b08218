package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard"
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
	db, ok := w.meta.DatabaseOf(name)
	if !ok {
		w.tb.Fatalf("%s is of no database", name)
	}
	c, _ := db.Copy(name, node)
	return c.ID
}

// wantCopies checks that the copies of a database on the nodes are there, and
// whether they are complete.
func (w *world) wantCopies(m *meta.Database, complete bool, nodes ...string) {
	w.tb.Helper()
	for _, node := range nodes {
		for _, name := range m.CopiesOn(node) {
			if _, _, err := w.locals[node].Position(w.tb.Context(), name); err != nil {
				w.tb.Errorf("%s: %v", node, err)
			} else if w.locals[node].Rebuilding(name) == complete {
				w.tb.Errorf("%s: %s is complete: %t", node, name, !complete)
			}
		}
	}
}

// TestCopiesAreMadeWhenAsked: this node hears of a database that somebody else creates. It
// makes its copies by itself, or for the first request, whichever comes first; they are
// complete, and nothing is waited for.
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
			if still { // of the other range nobody has asked
				if err := (&tidier{c: w.Coordinator}).sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			w.wantCopies(m, true, node1)
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
		k := &tidier{c: w.Coordinator}
		if err := k.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range d.meta.CopiesOn(node1) {
			if err := w.locals[node1].Drop(t.Context(), name); err != nil { // nothing tells that it was here
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
			w.wantCopies(d.meta, false, node1)
			if err := k.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
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
		if err := w.meta.ReplaceNode(t.Context(), node3, node1); err != nil {
			t.Fatal(err)
		}
		d = w.open("pond")
		if got, err := d.Open(t.Context(), OpenOptions{ID: "frog", R: 1}); err != nil || got.Rev.Pos != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		w.wantCopies(d.meta, false, node1)
	})
}

// TestAskedForAnotherCopy: a node makes no copy that the map does not have there.
func TestAskedForAnotherCopy(t *testing.T) {
	w := start(t, setup{nodes: 2, still: true})
	m := w.commit(meta.NewDatabaseID(), "pond")
	t1 := newDB(w.Coordinator, m).segments[0].near[0]
	for _, id := range []uint64{t1.ID + 1, t1.ID + 100, 1} {
		to := t1.Addressee()
		to.Copy = id
		if err := w.makeAsked(t.Context(), t1.Name, to); !fault.Is(err, fault.NoCopy) {
			t.Errorf("copy %d: %v", id, err)
		}
	}
	if w.locals[node1].Has(t1.Name) {
		t.Error("it was made")
	}
	if err := w.makeAsked(t.Context(), t1.Name, t1.Addressee()); err != nil || !w.locals[node1].Has(t1.Name) {
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
		w.wantCopies(m, false, node1)
	})
}

// TestLostDiskOfOnlyCopies: what nobody else has is lost, also when nothing but the
// metadata tells that it was here.
func TestLostDiskOfOnlyCopies(t *testing.T) {
	w := start(t, setup{still: true})
	d := w.create("pond", CreateOptions{Q: 1})
	put(t, d, "frog", doc.Rev{}, `{}`)
	k := &tidier{c: w.Coordinator}
	if err := k.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := d.meta.CopiesOn(node1)[0]
	if err := w.locals[node1].Drop(t.Context(), name); err != nil {
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
	at := d.segments[0].near[0]
	peers := replica.NewLocal(w.Held())
	if _, err := replica.Drop.On(t.Context(), replica.Copy{At: peers, To: at.Addressee()}, at.Name); err != nil {
		t.Fatal(err)
	}
	_, err := replica.Open.On(t.Context(), replica.Copy{At: peers, To: at.Addressee()}, shard.OpenRequest{Copy: at.Name, ID: "frog"})
	if !fault.Is(err, fault.NoCopy) {
		t.Errorf("it is there: %v", err)
	}
	if err := (&tidier{c: w.Coordinator}).sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.locals[node1].Has(at.Name) {
		t.Error("it was made again")
	}
}
