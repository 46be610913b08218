package meta

import (
	"testing"
	"testing/synctest"

	"divan/cluster/meta/dbsetting"
	"divan/storage/fault"
)

// A deletion of one database leaves alone the one that was made after it under
// the same name.
func TestDeleteExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		for i := range g.nodes {
			m, other := g.meta(i), g.meta((i+1)%3)
			first := create(t, m, "pond")
			if _, err := other.DeleteDatabase(t.Context(), "pond"); err != nil {
				t.Fatal(err)
			}
			wantKind(t, m.DeleteExactly(t.Context(), first), fault.NotFound)
			second := create(t, other, "pond")
			wantKind(t, m.DeleteExactly(t.Context(), first), fault.NotFound)
			for j := range g.nodes {
				if err := g.meta(j).CatchUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				if now, ok := g.meta(j).Database("pond"); !ok || now.ID != second.ID {
					t.Fatalf("node %d has %+v", j, now)
				}
			}
			if err := m.Set(t.Context(), whichever("pond"), dbsetting.RevsLimit, 7); err != nil { // still the same database
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

// A node whose program was exchanged says so as soon as there is a leader.
func TestMemberTellsItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		at := g.follower()
		old, _ := g.meta(at).Node(g.nodes[at].name)
		g.stop(at)
		now := old.Version
		old.Version = "another one"
		if err := g.meta(g.leader()).PutNode(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		g.start(at)
		g.waitReady(at)
		g.wait("the announcement", func() bool {
			n, _ := g.meta(g.leader()).Node(old.Name)
			return n.Version == now
		})
	})
}
