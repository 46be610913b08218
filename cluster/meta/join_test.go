package meta

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/meta/metapb"
	"divan/cluster/meta/voters"
	"divan/shard/ring"
	"divan/storage/fault"
)

// A node that joins late gets everything from a snapshot, since the log was
// compacted.
func TestJoinBySnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 2)
		m := g.meta(g.leader())
		for i := range 100 {
			create(t, m, fmt.Sprintf("db%d", i))
		}
		if _, err := m.DeleteDatabase(t.Context(), "db7"); err != nil {
			t.Fatal(err)
		}
		if err := m.raft.Load().ReloadConfig(reloadable(m)); err != nil {
			t.Fatal(err)
		}
		if err := m.raft.Load().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		late := g.add("late@host", "")
		g.start(late)
		g.waitReady(late)
		if got, want := dump(g.meta(late).fsm), dump(m.fsm); got != want {
			t.Errorf("the late node has\n%s\nwant\n%s", got, want)
		}
		if snaps, err := g.nodes[late].stores.Snapshots.List(); err != nil || len(snaps) == 0 {
			t.Errorf("it got them without a snapshot: %v", err)
		}
		create(t, g.meta(late), "after")
		g.wait("it votes", func() bool { return len(g.meta(late).Voters()) == 3 })

		g.stop(late)
		g.start(late)
		g.waitReady(late)
		if _, ok := g.meta(late).Database("after"); !ok || g.meta(late).Databases().Len() != 100 {
			t.Error("a restart lost databases")
		}
	})
}

// A node that was removed while it was away is refused when it comes back,
// until it is put back or its disk is emptied.
func TestRemovedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx := t.Context()
		gone := g.follower()
		name := g.nodes[gone].name
		core, logs := observer.New(zap.ErrorLevel)
		g.nodes[gone].log = zap.New(core)
		g.stop(gone)
		m := g.meta(g.leader())
		if err := m.RemoveNode(ctx, name); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(m.Voters(), name) || len(m.Nodes()) != 2 {
			t.Errorf("after the removal: %v, %v", m.Voters(), m.Nodes())
		}
		wantKind(t, m.RemoveNode(ctx, name), fault.NotFound)
		create(t, m, "films")

		g.start(gone)
		m = g.meta(gone)
		// Raft may still send it the log up to its removal, else it is told when
		// it asks.
		g.wait("it is told", func() bool { return m.Removed() && logs.Len() > 0 })
		if text := fmt.Sprint(logs.All()); !strings.Contains(text, "was removed from") {
			t.Errorf("it logged %s", text)
		}
		wantKind(t, second(m.CreateDatabase(ctx, Create{Name: "stray", Q: 1, N: 1})), fault.Unavailable)
		wantKind(t, second(m.Require(ctx, "stray")), fault.Unavailable)
		if slices.Contains(g.meta(g.leader()).Voters(), name) {
			t.Error("it votes again")
		}

		if err := g.meta(g.leader()).PutNode(ctx, Node{Name: name, ClusterVersion: ClusterVersion}); err != nil {
			t.Fatal(err)
		}
		g.wait("it is part of the cluster again", func() bool { return !m.Removed() })
		if _, err := m.Require(ctx, "films"); err != nil {
			t.Error(err)
		}

		g.wait("it may vote", func() bool { return slices.Contains(m.Voters(), name) })
		if err := g.meta(g.leader()).RemoveNode(ctx, name); err != nil { // while it runs
			t.Fatal(err)
		}
		g.wait("it notices", m.Removed)
		g.stop(gone)
		g.loseDisk(gone)
		g.start(gone)
		g.waitReady(gone)
		if _, ok := g.meta(gone).Database("films"); !ok || g.meta(gone).Removed() {
			t.Error("an emptied node does not join")
		}
	})
}

// The leader itself can be removed; the last node and a node without which no
// majority would be left cannot.
func TestRemoveTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx := t.Context()
		leader := g.leader()
		away := g.follower()
		g.stop(away)
		wantKind(t, g.meta(leader).RemoveNode(ctx, g.nodes[leader].name), fault.BadRequest)
		g.start(away)
		g.waitReady(away)
		if err := g.meta(away).RemoveNode(ctx, g.nodes[leader].name); err != nil {
			t.Fatal(err)
		}
		g.stop(leader)
		create(t, g.meta(away), "films")
		last := g.leader()
		other := g.follower()
		if err := g.meta(last).RemoveNode(ctx, g.nodes[other].name); err != nil {
			t.Fatal(err)
		}
		g.stop(other)
		wantKind(t, g.meta(last).RemoveNode(ctx, g.nodes[last].name), fault.BadRequest)
		create(t, g.meta(last), "books")
	})
}

func TestReplaceNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx := t.Context()
		gone := g.follower()
		old := g.nodes[gone].name
		m := g.meta(g.leader())
		sub, _ := m.Subscribe()
		var want []Database
		for i := range 3 {
			want = append(want, *create(t, m, fmt.Sprintf("db%d", i)))
		}
		g.stop(gone)
		fresh := g.add("fresh@host", "")
		wantKind(t, m.ReplaceNode(ctx, old, "fresh@host", false), fault.NotFound)
		wantKind(t, m.ReplaceNode(ctx, old, old, false), fault.BadRequest)
		g.start(fresh)
		g.waitReady(fresh)
		m = g.meta(fresh)
		changed := m.NodesChanged()
		if err := m.ReplaceNode(ctx, old, "fresh@host", false); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Error("nobody is told")
		}
		for _, db := range want {
			got, _ := m.Database(db.Name)
			for i, s := range got.Shards {
				before := db.Shards[i].Nodes()
				if at := slices.Index(before, old); s.Nodes()[at] != "fresh@host" || s.On(old) || len(s.Nodes()) != 3 {
					t.Errorf("%s: %v became %v", db.Name, before, s.Nodes())
				}
			}
		}
		if _, ok := m.Node(old); ok || slices.Contains(g.meta(g.leader()).Voters(), old) {
			t.Error("the old node is still there")
		}
		g.wait("the new one votes", func() bool { return len(m.Voters()) == 3 })
		events, err := sub.Next(ctx)
		if err != nil || len(events) != 6 || events[5].Kind != Changed {
			t.Errorf("%d events, %v", len(events), err)
		}
	})
}

// A node that goes after it was chosen for a new database is not left in the map, where no node
// would ever take its place.
func TestCreateDuringReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		gone := g.follower()
		g.stop(gone)
		old := g.nodes[gone].name
		fresh := g.add("fresh@host", "")
		g.start(fresh)
		g.waitReady(fresh)
		leader := g.meta(g.leader())
		var once sync.Once
		g.during(func(req *metapb.Request) {
			if req.GetPropose() == nil {
				return
			}
			once.Do(func() {
				if err := leader.ReplaceNode(t.Context(), old, "fresh@host", false); err != nil {
					t.Error(err)
				}
			})
		})
		db, err := g.meta(fresh).CreateDatabase(t.Context(), Create{Name: "pond", Q: 2, N: 4})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := leader.Node(old); ok {
			t.Fatal("not replaced meanwhile")
		}
		for _, s := range db.Shards {
			if s.On(old) || !s.On("fresh@host") || len(s.Nodes()) != 3 {
				t.Errorf("a node that is gone has a copy: %v", s.Nodes())
			}
		}
	})
}

// A range that has copies on both nodes loses the one of the node that goes.
func TestReplaceByHolder(t *testing.T) {
	shards := []ring.Shard{{Copies: ring.CopiesOn("a", "b", "c")}, {Copies: ring.CopiesOn("b", "c")}, {Copies: ring.CopiesOn("a", "c")}}
	for i, r := range ring.Split(3) {
		shards[i].Range = r
	}
	got, ok := ring.Replace(shards, "a", "b", &ring.NewCopies{})
	if !ok || !slices.Equal(got[0].Nodes(), []string{"b", "c"}) || !slices.Equal(got[2].Nodes(), []string{"b", "c"}) || len(shards[0].Nodes()) != 3 {
		t.Errorf("%v", got)
	}
	if _, ok := ring.Replace(shards, "d", "b", &ring.NewCopies{}); ok {
		t.Error("changed what a stranger had")
	}
}

// A node that is being emptied keeps what it has and gets nothing new, also
// after a restart; its addresses are kept up to date.
func TestDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 3)
		ctx := t.Context()
		i := g.follower()
		name := g.nodes[i].name
		if err := g.meta(i).SetDraining(ctx, name, true); err != nil {
			t.Fatal(err)
		}
		wantKind(t, g.meta(i).SetDraining(ctx, "nobody", true), fault.NotFound)
		g.stop(i)
		g.nodes[i].zone = "elsewhere"
		g.start(i)
		g.waitReady(i)
		m := g.meta(g.leader())
		g.wait("the zone is known", func() bool { n, _ := m.Node(name); return n.Zone == "elsewhere" })
		if n, _ := m.Node(name); !n.Draining {
			t.Error("a restart ended the draining")
		}
		if db := create(t, m, "films"); db.N != 2 || db.Shards[0].On(name) {
			t.Errorf("placed on %v", db.Shards)
		}
		// Without a second one there would be no quorum of three.
		for k := range g.nodes {
			if k != i && k != g.leader() {
				if err := m.SetDraining(ctx, g.nodes[k].name, true); err != nil {
					t.Fatal(err)
				}
			}
		}
		if db := create(t, m, "plays"); db.N != 2 {
			t.Errorf("placed on %v", db.Shards)
		}
		for k := range g.nodes {
			if err := m.SetDraining(ctx, g.nodes[k].name, false); err != nil {
				t.Fatal(err)
			}
		}
		// A node that is down gets its copies all the same.
		g.stop(i)
		if db := create(t, m, "books"); db.N != 3 || !db.Shards[0].On(name) {
			t.Errorf("placed on %v", db.Shards)
		}
	})
}

// Five of seven nodes vote, spread over the zones; a dead one is replaced, and
// takes no vote back when it returns.
func TestWhoVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		for i, zone := range []string{"x", "x", "x", "x", "y", "y", "z"} {
			g.add(fmt.Sprintf("n%d@host", i), zone)
		}
		g.nodes[0].founder = true
		for i := range g.nodes {
			g.start(i)
			g.waitReady(i)
		}
		m := g.meta(0)
		zones := func() string {
			count := map[string]int{}
			for _, v := range m.Voters() {
				n, _ := m.Node(v)
				count[n.Zone]++
			}
			return fmt.Sprint(count)
		}
		g.wait("five voters in three zones", func() bool { return zones() == "map[x:2 y:2 z:1]" })
		g.stop(4)
		time.Sleep(voters.FailedAfter - time.Second)
		if !slices.Contains(m.Voters(), "n4@host") {
			t.Error("a short absence cost a vote")
		}
		g.wait("a dead voter is replaced", func() bool {
			return len(m.Voters()) == 5 && !slices.Contains(m.Voters(), "n4@host")
		})
		g.start(4)
		g.waitReady(4)
		time.Sleep(time.Minute)
		if got := m.Voters(); len(got) != 5 || len(m.Nodes()) != 7 {
			t.Errorf("voters %v", got)
		}
		for i := range g.nodes {
			create(t, g.meta(i), fmt.Sprintf("db%d", i))
		}
	})
}

func TestRefuse(t *testing.T) {
	node := &metapb.Node{Name: "a@a"}
	good := &metapb.Join{Node: node, Uuid: "u"}
	u := &state{uuid: "u"}
	if err := refuse(good, u, true); err != nil {
		t.Error(err)
	}
	if err := refuse(&metapb.Join{Node: node, Fresh: true}, u, false); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		j      *metapb.Join
		member bool
		says   string
	}{
		{&metapb.Join{Node: node, Uuid: "v"}, true, "node a@a belongs to the cluster v; this is the cluster u"},
		{good, false, "was removed from the cluster u"},
	} {
		err := refuse(c.j, u, c.member)
		wantKind(t, err, fault.BadRequest)
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}

// A node of another cluster, and one that speaks for another, are refused.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestCluster(t, 2)
		ctx := t.Context()
		m := g.meta(g.follower())
		join := &metapb.Request{Question: &metapb.Request_Join{Join: &metapb.Join{Node: &metapb.Node{Name: "x@x"}, Uuid: "other"}}}
		ask := func(from string) (*metapb.Answer, error) {
			b, err := m.Answer(ctx, from, encode(join))
			if err != nil {
				return nil, err
			}
			return decodeAnswer(b)
		}
		if a, err := ask("x@x"); err != nil || a.Refusal == nil || !strings.Contains(a.Refusal.Reason, m.UUID()) {
			t.Errorf("%+v, %v", a, err)
		}
		wantKind(t, second(ask("y@y")), fault.BadRequest)
		leader := g.meta(g.leader())
		propose := func(b []byte) []byte {
			return encode(&metapb.Request{Question: &metapb.Request_Propose{Propose: b}})
		}
		_, err := leader.Answer(ctx, "x@x", propose(encode(deleteCommand(&metapb.DeleteDatabase{Name: "films"}))))
		wantKind(t, err, fault.BadRequest)
		_, err = leader.Answer(ctx, m.Self(), propose(unknownCommand()))
		wantKind(t, err, fault.BadRequest)
		_, err = leader.Answer(ctx, m.Self(), []byte{9, 9})
		wantKind(t, err, fault.BadRequest)
		if len(leader.Nodes()) != 2 {
			t.Errorf("nodes %v", leader.Nodes())
		}
	})
}

// Without a seed that takes it in, a node waits, and stops when told to.
func TestNobodyTakesIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		g.add("a@a", "")
		g.add("b@b", "")
		g.start(1)
		time.Sleep(time.Minute)
		m := g.meta(1)
		if m.ready.is() {
			t.Error("ready without a group")
		}
		wantKind(t, second(m.CreateDatabase(t.Context(), Create{Name: "a", Q: 1, N: 1})), fault.Unavailable)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.WaitReady(ctx); err == nil {
			t.Error("waited in vain without an error")
		}
	})
}

// A node that goes before it has a vote gets none any more: with it the group
// would have no majority.
func TestNoVoteForTheAbsent(t *testing.T) {
	for after := time.Duration(0); after < 8*time.Second; after += 390 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			g := newTestCluster(t, 1)
			founder := g.leader()
			late := g.add("late@host", "")
			g.start(late)
			g.waitReady(late)
			<-time.After(after)
			g.stop(late)
			synctest.Wait() // a vote that was on its way when the node went is given
			votes := slices.Contains(g.meta(founder).Voters(), "late@host")
			<-time.After(15 * time.Second)
			if got := slices.Contains(g.meta(founder).Voters(), "late@host"); got != votes {
				t.Errorf("stopped after %v: it votes: %t, then %t", after, votes, got)
			}
			if !votes {
				create(t, g.meta(founder), "alone")
			}
		})
	}
}
