package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/birth"
	"divan/cluster/meta"
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

func (w *world) wantNoBirths() {
	w.tb.Helper()
	if n := w.handles.births.Len(); n != 0 {
		w.tb.Errorf("%d births are kept", n)
	}
}

// TestCreationWithoutAnswer: nobody knows what came of a creation, because the
// leader is gone. When it turns out that the others have it, it is made like
// any other one, or else it could not be used until the leader is back.
func TestCreationWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3})
		synctest.Wait()
		w.trouble(away, node2)
		id := meta.NewDatabaseID()
		unknown := fault.New(fault.Unavailable, "no answer")
		wish := &meta.Create{Name: "pond", ID: id}
		if err := w.unsure(t.Context(), wish, unknown); !fault.Is(err, fault.Unavailable) {
			t.Errorf("creation: %v", err)
		}
		<-time.After(birth.DoubtTime - time.Second)
		m := w.commit(id, "pond")
		synctest.Wait()
		w.wantCopies(m, true, node1, "n3@127.0.0.1")
		put(t, w.open("pond"), "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		<-time.After(createWait)
		synctest.Wait()
		w.wantNoBirths()
	})
}

// TestCreationSeenBeforeFailure: the database is in the map by the time when the
// request learns that there will be no answer.
func TestCreationSeenBeforeFailure(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	id := meta.NewDatabaseID()
	m := w.commit(id, "pond")
	unknown := fault.New(fault.Unavailable, "no answer")
	if err := w.unsure(t.Context(), &meta.Create{Name: "pond", ID: id}, unknown); err != nil {
		t.Error(err)
	}
	w.wantCopies(m, true, node1, node2, "n3@127.0.0.1")
	w.wantNoBirths()
	other := meta.NewDatabaseID() // a database of that name, but that of somebody else
	if err := w.unsure(t.Context(), &meta.Create{Name: "pond", ID: other}, unknown); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
}

// TestCreationMuchLater: after a while copies are made as everywhere else; and
// what was expected in vain is forgotten.
func TestCreationMuchLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3})
		synctest.Wait()
		id := meta.NewDatabaseID()
		w.handles.births.Doubt(id, "pond")
		<-time.After(birth.DoubtTime)
		m := w.commit(id, "pond")
		<-time.After(2 * birthGrace)
		synctest.Wait()
		w.wantCopies(m, false, node1)
		<-time.After(sweepEvery)
		synctest.Wait()
		w.wantNoBirths()
	})
}

// TestCreationWithLostEvent: the events of a while were lost, as when a node
// catches up by a snapshot.
func TestCreationWithLostEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		id := meta.NewDatabaseID()
		w.handles.births.Doubt(id, "pond")
		m := w.commit(id, "pond")
		if err := (&tidier{c: w.Coordinator}).sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(createWait)
		synctest.Wait()
		w.wantCopies(m, true, node1, node2, "n3@127.0.0.1")
		w.wantNoBirths()
	})
}
