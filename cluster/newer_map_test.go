package cluster

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// joinOn has a node lose its copy of a database with one range, and the copy join.
func (c *council) joinOn(n *councillor, by *councillor, db string) {
	c.t.Helper()
	m, ok := by.meta.Database(db)
	if !ok {
		c.t.Fatalf("%s does not know %s", by.name, db)
	}
	name := m.CopyName(m.Shards[0].Range)
	_, one, _ := by.meta.CopyIn(name, n.name)
	if err := n.disk.Copies.Drop(c.t.Context(), name); err != nil {
		c.t.Fatal(err)
	}
	err := by.meta.ChangeCopies(c.t.Context(), []meta.CopyChange{{Name: db, ID: m.ID, Change: ring.Change{Copy: one.ID, To: ring.StateJoining}}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.settle(func() bool {
		_, now, _ := n.meta.CopyIn(name, n.name)
		return now.State == ring.StateJoining && n.disk.Copies.Has(name)
	})
}

// has reports whether the copy of a node has a document.
func (n *councillor) has(t *testing.T, db, id string) bool {
	t.Helper()
	m, ok := n.meta.Database(db)
	if !ok {
		return false
	}
	_, err := n.disk.Open(t.Context(), shard.OpenRequest{Copy: m.CopyName(m.Shards[0].Range), ID: id})
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.NoCopy) {
		t.Fatal(err)
	}
	return err == nil
}

// TestWriteByAnOldMap: a coordinator has not heard that copies have changed. Those that
// have refuse what it counts; it waits for the map and goes on with what was decided, or, when it
// does not hear, says that fewer copies have the edit than should.
func TestWriteByAnOldMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCouncil(t)
		leader := c.node(c.nodes[0].meta.Leader())
		var rest []*councillor
		for _, n := range c.nodes {
			if n != leader {
				rest = append(rest, n)
			}
		}
		lost, late := rest[0], rest[1]
		if err := leader.CreateDB(t.Context(), "pond", CreateOptions{N: 3, Q: 1}); err != nil {
			t.Fatal(err)
		}
		d, err := late.DB(t.Context(), "pond")
		if err != nil {
			t.Fatal(err)
		}
		put(t, d, "before", doc.Rev{}, `{}`)

		c.settle(func() bool { return lost.has(t, "pond", "before") })
		c.part(leader.name, late.name)
		c.joinOn(lost, leader, "pond")
		begun := time.Now()
		r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "cut off", Body: []byte(`{}`)})[0]
		if took := time.Since(begun); r.Err != nil || !r.Accepted || took < fanout.NudgeLimit {
			t.Errorf("after %s: %+v", took, r)
		}
		begun = time.Now()
		if got, err := d.Open(t.Context(), OpenOptions{ID: "before", R: 2}); err != nil || got.Rev.Pos != 1 || time.Since(begun) > time.Second {
			t.Errorf("a read that need not wait as long, after %s: %+v, %v", time.Since(begun), got, err)
		}
		if leader.has(t, "pond", "cut off") || lost.has(t, "pond", "cut off") || !late.has(t, "pond", "cut off") {
			t.Error("a copy took an edit of an older map")
		}

		c.part()
		c.settle(func() bool {
			now, _ := late.meta.Database("pond")
			return now.Generation > d.meta.Generation
		})
		// The request has begun before.
		if r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "late", Body: []byte(`{}`)})[0]; r.Err != nil || r.Accepted || r.Rev.Pos != 1 {
			t.Errorf("with the newer map: %+v", r)
		}
		synctest.Wait()
		for _, n := range c.nodes {
			if !n.has(t, "pond", "late") {
				t.Errorf("%s lacks it", n.name)
			}
		}
		if now, _ := late.DB(t.Context(), "pond"); now == d {
			t.Error("the handle is the old one")
		}
		if got, err := d.Open(t.Context(), OpenOptions{ID: "late", R: 2}); err != nil || got.Rev.Pos != 1 { // by the old handle still
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestJoiningCopiesAreCountedBesides: an edit is acknowledged when more than half of the
// full copies and more than half of all have it; nothing is read from a copy that joins.
func TestJoiningCopiesAreCountedBesides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		d := w.create("pond", CreateOptions{N: 3, Q: 1})
		put(t, d, "before", doc.Rev{}, `{}`)
		w.settleWrites()
		name := d.meta.CopyName(d.meta.Shards[0].Range)
		write := func(id string, accepted bool) {
			t.Helper()
			r := update(t, w.open("pond"), UpdateOptions{NewEdits: true}, shard.Edit{ID: id, Body: []byte(`{}`)})[0]
			if r.Err != nil || r.Accepted != accepted {
				t.Errorf("%s: %+v", id, r)
			}
			w.settleWrites()
		}
		w.joinAgain(name, node3) // two full copies
		write("all", false)
		up := w.trouble(away, node3)
		write("both full", false)
		up()
		up = w.trouble(away, node2)
		write("one full", true)
		up()
		w.joinAgain(name, node2) // one full copy
		write("one full and two joining", false)
		up2, up3 := w.trouble(away, node2), w.trouble(away, node3)
		write("one", true)
		up2()
		write("one full and one joining", false)
		up3()
		for _, node := range []string{node2, node3} {
			if _, err := w.locals[node].Open(t.Context(), shard.OpenRequest{Copy: name, ID: "one full and two joining"}); err != nil {
				t.Errorf("%s: %v", node, err)
			}
		}
		for _, at := range w.open("pond").routing.Routes[0].Joining {
			_, err := replica.Open.On(t.Context(), w.replica(at), shard.OpenRequest{Copy: name, ID: "one full and two joining"})
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("the joining copy on %s answers: %v", at.Node, err)
			}
		}
	})
}

// TestFeedOutlivesItsCopies: a feed is read from another node for longer than the copies of
// the map that it began with are there.
func TestFeedOutlivesItsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 5, still: true})
		if err := w.meta.SetDraining(t.Context(), node1, true); err != nil {
			t.Fatal(err)
		}
		d := w.create("pond", CreateOptions{N: 2, Q: 1})
		put(t, d, "frog", doc.Rev{}, `{}`)
		w.settleWrites()
		feed, err := d.Changes(t.Context(), ChangesQuery{Limit: NoLimit})
		if err != nil {
			t.Fatal(err)
		}
		defer feed.Close()
		next := func(want string) {
			t.Helper()
			for {
				for feed.Next() {
					if feed.Row().ID == want { // what a filled copy has may be shown again
						return
					}
				}
				if err := feed.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		next("frog")
		if feed.Next() {
			t.Fatal("there is more")
		}
		name := d.meta.CopyName(d.meta.Shards[0].Range)
		for _, old := range d.meta.Shards[0].Nodes() {
			s := &w.open("pond").routing.Routes[0]
			by := slices.DeleteFunc([]string{node2, node3, nodeName(4), nodeName(5)}, func(n string) bool {
				return slices.ContainsFunc(s.Copies, func(t ring.Replica) bool { return t.Node == n }) || slices.Contains(d.meta.Shards[0].Nodes(), n)
			})[0]
			if err := w.meta.ReplaceNode(t.Context(), old, by, false); err != nil {
				t.Fatal(err)
			}
			s = &w.open("pond").routing.Routes[0]
			if err := d.copyDocs(wire.ForRepair(t.Context()), s.Copies[0], s.Joining[0], []string{"frog"}); err != nil {
				t.Fatal(err)
			}
			w.change(name, by, ring.StateFull, s.Copies[0].ID)
		}
		w.trouble(away, d.meta.Shards[0].Nodes()...) // they tell nothing of a newer map
		put(t, w.open("pond"), "toad", doc.Rev{}, `{}`)
		w.settleWrites()
		next("toad")
	})
}

// TestRestOfUnanswered: when no copy of the older map has answered, and a copy may have done
// some of the edits unseen, the others are done by the newer one, and each has an answer.
func TestRestOfUnanswered(t *testing.T) {
	d := start(t, setup{}).create("db", CreateOptions{Q: 1})
	req := shard.DecideRequest{
		Edits:    []shard.Edit{{ID: "doubtful", Body: []byte(`{}`)}, {ID: "open", Body: []byte(`{}`)}},
		NewEdits: true, Limits: d.limits(), DB: "db",
	}
	lost := fault.New(fault.Internal, "the answer got lost")
	w := d.writeRest(t.Context(), &d.routing.Routes[0], 0, req, written{err: lost, open: []int{1}})
	if w.err != nil || len(w.results) != 2 || len(w.open) != 0 {
		t.Fatalf("%+v", w)
	}
	if !errors.Is(w.results[0].Err, lost) || w.results[1].Err != nil || w.results[1].Rev.IsZero() {
		t.Fatalf("%+v", w.results)
	}
}
