package meta

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/meta/dbsetting"
	"divan/cluster/meta/metapb"
	"divan/storage/fault"
)

// A node that left is taken out of Raft too when the one that removed it could
// not: two voters, one of which has gone, decide nothing.
func TestLeaverIsRemovedFromRaft(t *testing.T) {
	for n := 2; n <= 4; n++ {
		synctest.Test(t, func(t *testing.T) {
			g := newTestCluster(t, n)
			gone := g.follower()
			name := g.nodes[gone].name
			leader := g.meta(g.leader())
			drop := &metapb.Command{Op: &metapb.Command_RemoveNode{RemoveNode: &metapb.RemoveNode{Name: name}}}
			if err := leader.raft.Load().Apply(encode(drop), 0).Error(); err != nil {
				t.Fatal(err)
			}
			g.wait("it does not vote", func() bool { return !slices.Contains(leader.Voters(), name) })
			g.stop(gone)
			<-time.After(10 * time.Second)
			create(t, g.meta(g.leader()), "pond")
		})
	}
}

// A node that is removed while the leader asks whether it may vote gets no
// vote.
func TestRemovedWhileItIsAsked(t *testing.T) {
	for at := range int64(8) {
		synctest.Test(t, func(t *testing.T) {
			g := newTestCluster(t, 1)
			leader := g.meta(g.leader())
			late := g.add("late@host", "")
			g.start(late)
			g.waitReady(late)
			var asked atomic.Int64
			g.during(func(req *metapb.Request) {
				if req.GetLogStats() == nil || asked.Add(1) != at+1 {
					return
				}
				if err := leader.RemoveNode(t.Context(), "late@host"); err != nil {
					t.Error(err)
				}
			})
			<-time.After(20 * time.Second)
			if _, ok := leader.Node("late@host"); ok || slices.Contains(leader.Voters(), "late@host") {
				t.Errorf("removed at question %d of %d: member %t, voters %v", at+1, asked.Load(), ok, leader.Voters())
			}
			g.stop(late)
			create(t, leader, "alone")
		})
	}
}

// What is decided about one database is not done to the next one of its name.
func TestAlterExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		for i := range g.nodes {
			m, ctx := g.meta(i), t.Context()
			first := create(t, m, "pond")
			if err := m.SetSecurity(ctx, first, []byte(`{"admins":{"names":["ann"]}}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := g.meta((i+1)%3).DeleteDatabase(ctx, "pond"); err != nil {
				t.Fatal(err)
			}
			wantKind(t, m.SetSecurity(ctx, first, nil), fault.NotFound)
			second := create(t, g.meta((i+1)%3), "pond")
			wantKind(t, m.SetSecurity(ctx, first, []byte(`{"admins":{"names":["ann"]}}`)), fault.NotFound)
			wantKind(t, m.Set(ctx, first, dbsetting.RevsLimit, 5), fault.NotFound)
			wantKind(t, m.Set(ctx, first, dbsetting.PurgedInfosLimit, 5), fault.NotFound)
			if err := m.Set(ctx, second, dbsetting.RevsLimit, 7); err != nil {
				t.Fatal(err)
			}
			got, ok := m.Database("pond")
			if !ok || got.ID != second.ID || got.Settings[dbsetting.RevsLimit] != 7 || len(got.Security) != 0 {
				t.Fatalf("node %d has %+v", i, got)
			}
			if _, err := m.DeleteDatabase(ctx, "pond"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A node that was removed before another one took its place can still be replaced.
func TestReplaceAfterRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx := t.Context()
		gone := g.follower()
		old := g.nodes[gone].name
		db := create(t, g.meta(gone), "pond")
		g.stop(gone)
		fresh := g.add("fresh@host", "")
		g.start(fresh)
		g.waitReady(fresh)
		m := g.meta(g.leader())
		if err := m.RemoveNode(ctx, old); err != nil {
			t.Fatal(err)
		}
		if err := g.meta(fresh).CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		if err := g.meta(fresh).ReplaceNode(ctx, old, "fresh@host", false); err != nil {
			t.Fatal(err)
		}
		got, err := g.meta(fresh).Require(ctx, db.Name)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range got.Shards {
			if s.On(old) || db.Shards[i].On(old) != s.On("fresh@host") {
				t.Errorf("%v became %v", db.Shards[i].Nodes(), s.Nodes())
			}
		}
		wantKind(t, m.ReplaceNode(ctx, old, "fresh@host", false), fault.NotFound) // no map names it now
		wantKind(t, m.ReplaceNode(ctx, "nobody@host", "fresh@host", false), fault.NotFound)
	})
}

// The zone that an administrator gave to a node which is configured with none stays, under any
// leader.
func TestZoneStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		for i, p := range g.nodes {
			if err := g.meta(0).SetZone(t.Context(), p.name, fmt.Sprintf("z%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, g.meta(0).SetZone(t.Context(), "nobody@host", "z"), fault.NotFound)
		stopped := g.leader()
		g.stop(stopped)
		leader := g.leader()
		g.start(stopped)
		g.waitReady(stopped)
		<-time.After(time.Minute)
		for i, p := range g.nodes {
			if n, _ := g.meta(leader).Node(p.name); n.Zone != fmt.Sprintf("z%d", i) {
				t.Errorf("%+v", n)
			}
		}
	})
}

// A node of which the leader has heard something new is not a member again when
// it was removed meanwhile, and stays marked when it was marked meanwhile.
func TestAnnounce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx, m := t.Context(), g.meta(g.leader())
		stale, _ := m.Node(g.nodes[g.follower()].name)
		amend := func() error {
			stale.Version = "next"
			_, err := m.proposer.propose(ctx, announce(stale))
			return err
		}
		if err := m.SetDraining(ctx, stale.Name, true); err != nil {
			t.Fatal(err)
		}
		if err := amend(); err != nil {
			t.Fatal(err)
		}
		if n, _ := m.Node(stale.Name); !n.Draining || n.Version != "next" {
			t.Errorf("%+v", n)
		}
		if err := m.RemoveNode(ctx, stale.Name); err != nil {
			t.Fatal(err)
		}
		wantKind(t, amend(), fault.NotFound)
		if _, ok := m.Node(stale.Name); ok {
			t.Error("a member again")
		}
	})
}
