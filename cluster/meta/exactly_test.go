package meta

import (
	"testing"
	"testing/synctest"

	"divan/storage/fault"
)

// A deletion of one database leaves alone the one that was made after it under
// the same name.
func TestDeleteExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCohort(t, 3)
		for i := range g.peers {
			m, other := g.meta(i), g.meta((i+1)%3)
			first := create(t, m, "pond")
			if _, err := other.DeleteDatabase(t.Context(), "pond"); err != nil {
				t.Fatal(err)
			}
			wantKind(t, m.DeleteExactly(t.Context(), first), fault.NotFound)
			second := create(t, other, "pond")
			wantKind(t, m.DeleteExactly(t.Context(), first), fault.NotFound)
			for j := range g.peers {
				if err := g.meta(j).CatchUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				if now, ok := g.meta(j).Database("pond"); !ok || now.ID != second.ID {
					t.Fatalf("node %d has %+v", j, now)
				}
			}
			if err := m.SetRevsLimit(t.Context(), whichever("pond"), 7); err != nil { // still the same database
				t.Fatal(err)
			}
			if err := m.DeleteExactly(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			if _, ok := m.Database("pond"); ok {
				t.Error("still there")
			}
		}
	})
}

// A kind of command that some member does not know is not proposed.
func TestOlderMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCohort(t, 3)
		db := create(t, g.meta(0), "pond")
		old, ok := g.meta(0).Node(g.peers[g.follower()].name)
		if !ok || old.Commands != newestCommand {
			t.Fatalf("%+v", old)
		}
		old.Commands = 0 // as a program says that knows of no versions
		if err := g.meta(0).PutNode(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		for i := range g.peers {
			wantKind(t, g.meta(i).DeleteExactly(t.Context(), db), fault.Unavailable)
			if _, err := g.meta(i).Require(t.Context(), "pond"); err != nil {
				t.Error(err)
			}
		}
		old.Commands = newestCommand
		if err := g.meta(0).PutNode(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if err := g.meta(g.follower()).DeleteExactly(t.Context(), db); err != nil {
			t.Error(err)
		}
	})
}

// A node whose program was exchanged says what it understands as soon as there
// is a leader.
func TestMemberTellsWhatItUnderstands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCohort(t, 3)
		at := g.follower()
		old, _ := g.meta(at).Node(g.peers[at].name)
		g.stop(at)
		old.Commands = 0
		if err := g.meta(g.leader()).PutNode(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		g.start(at)
		g.waitReady(at)
		g.wait("the announcement", func() bool {
			n, _ := g.meta(g.leader()).Node(old.Name)
			return n.Commands == newestCommand
		})
	})
}
