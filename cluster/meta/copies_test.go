package meta

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"divan/cluster/meta/metapb"
	"divan/shard/ring"
)

// copiesOf returns what the maps of a node say, database by database.
func copiesOf(m *Meta) string {
	out := ""
	for db := range m.Databases().All() {
		out += fmt.Sprintf("%s %d", db.Name, db.Generation)
		for _, s := range db.Shards {
			out += fmt.Sprint(s.Range, s.Copies)
		}
		out += "\n"
	}
	return out
}

// TestCopiesGetIDs: copies of a new database have ids that tell the command which created it, the same
// on every node, and a new copy in the place of another one has an id that none had.
func TestCopiesGetIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testCluster{t: t}
		t.Cleanup(g.close)
		for i := range 4 {
			g.add(fmt.Sprintf("n%d@host", i), "")
		}
		g.nodes[0].founder = true
		for i := range 4 {
			g.start(i)
			g.waitReady(i)
		}
		create(t, g.meta(0), "old")
		if err := g.meta(1).ReplaceNode(t.Context(), "gone@host", "n1@host", false); err == nil {
			t.Error("a node that never was is replaced")
		}
		g.wait("all have the same ids", func() bool {
			return !slices.ContainsFunc(g.nodes, func(p *testNode) bool { return copiesOf(p.meta) != copiesOf(g.meta(0)) })
		})
		old, _ := g.meta(0).Database("old")
		for _, s := range old.Shards {
			for _, c := range s.Copies {
				if old.Born != old.Generation || ring.CommandOf(c.ID) != old.Born {
					t.Errorf("%+v", old)
				}
			}
		}

		g.wait("three voters", func() bool { return len(g.meta(g.leader()).Voters()) == 3 })
		gone := old.Shards[0].Copies[0]
		by := 0
		for i := range g.nodes {
			if !old.Shards[0].On(g.nodes[i].name) {
				by = i
			}
		}
		for i := range g.nodes {
			if g.nodes[i].name == gone.Node {
				g.stop(i)
			}
		}
		if err := g.meta(g.leader()).ReplaceNode(t.Context(), gone.Node, g.nodes[by].name, false); err != nil {
			t.Fatal(err)
		}
		if err := g.meta(by).CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		now, _ := g.meta(by).Database("old")
		fresh, ok := now.Copy(now.CopyName(now.Shards[0].Range), g.nodes[by].name)
		if !ok || ring.CommandOf(fresh.ID) != now.Generation || now.Generation <= old.Generation || now.Born != old.Born {
			t.Errorf("%+v in the place of %+v, %+v", fresh, gone, now)
		}
		if err := g.meta(by).raft.Load().Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		want := copiesOf(g.meta(by))
		g.stop(by)
		g.start(by)
		g.waitReady(by)
		if got := copiesOf(g.meta(by)); got != want {
			t.Errorf("after a restart\n%s, want\n%s", got, want)
		}
	})
}

// TestStatesOfCopies: for any sequence of changes, ids are never given again, a copy that joins is
// a new one, and only that may become full.
func TestStatesOfCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newState()
		s.nodes = map[string]Node{"a": {Name: "a"}, "b": {Name: "b"}, "c": {Name: "c"}}
		apply := func(c *metapb.Command) {
			s.index++
			cmd, err := decodeCommand(encode(c))
			if err != nil {
				t.Fatal(err)
			}
			s.apply(cmd, newTombstones(), &effects{})
		}
		wish := &Database{Name: "db", ID: [16]byte{1}, Created: 5, Shards: []ring.Shard{{Range: ring.Full(), Copies: ring.CopiesOn("a", "b")}}}
		apply(&metapb.Command{Op: &metapb.Command_CreateDatabase{CreateDatabase: wish.proto()}})
		seen := map[uint64]string{}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			old, _ := s.dbs.Get("db")
			known := rapid.SampledFrom(old.Shards[0].Copies).Draw(t, "copy")
			change := &metapb.CopyChange{
				Name: "db", Id: rapid.SampledFrom([][]byte{old.ID[:], make([]byte, 16)}).Draw(t, "id"),
				Copy: known.ID + uint64(rapid.IntRange(0, 1).Draw(t, "past")), State: uint32(rapid.IntRange(0, 1).Draw(t, "state")),
			}
			if rapid.IntRange(0, 4).Draw(t, "replace") == 0 {
				nodes := []string{"a", "b", "c"}
				from, by := rapid.SampledFrom(nodes).Draw(t, "old"), rapid.SampledFrom(nodes).Draw(t, "by")
				s.nodes[from], s.nodes[by] = Node{Name: from}, Node{Name: by}
				if from != by {
					apply(&metapb.Command{Op: &metapb.Command_ReplaceNode{ReplaceNode: &metapb.ReplaceNode{Name: from, By: by}}})
				}
			} else {
				apply(&metapb.Command{Op: &metapb.Command_ChangeCopies{ChangeCopies: &metapb.ChangeCopies{Changes: []*metapb.CopyChange{change}}}})
			}
			now, _ := s.dbs.Get("db")
			if !ring.Identified(now.Shards) || slices.Equal(now.Shards[0].Copies, old.Shards[0].Copies) != (now.Generation == old.Generation) {
				t.Fatalf("%+v became %+v", old, now)
			}
			for _, c := range now.Shards[0].Copies {
				if was, ok := seen[c.ID]; ok && was != c.Node {
					t.Fatalf("%d was on %s: %+v", c.ID, was, now)
				}
				seen[c.ID] = c.Node
				before, here := old.Shards[0].CopyOn(c.Node)
				if here && before.State == ring.StateFull && c.State == ring.StateJoining && c.ID == before.ID {
					t.Fatalf("%+v joins: %+v", before, now)
				}
			}
		}
	})
}
