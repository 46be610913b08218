package cluster

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"divan/cluster/meta"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/fault"
)

// splitAll splits the one range of a database on all nodes; its copies have to be empty.
func (c *council) splitAll(db string) {
	c.t.Helper()
	leader := c.node(c.nodes[0].meta.Leader())
	known := func() *meta.Database {
		m, _ := leader.meta.Database(db)
		return m
	}
	old := known()
	var adds []ring.Addition
	for _, r := range ring.Split(2) {
		for _, one := range old.Shards[0].Copies {
			adds = append(adds, ring.Addition{Range: r, Node: one.Node})
		}
	}
	if err := leader.meta.AddCopies(c.t.Context(), db, old.ID, adds); err != nil {
		c.t.Fatal(err)
	}
	var filled []uint64
	for _, one := range old.Shards[0].Copies {
		filled = append(filled, one.ID)
	}
	for _, to := range []ring.State{ring.StateJoining, ring.StateFull} {
		var changes []meta.CopyChange
		for _, s := range known().Shards {
			for _, one := range s.Copies {
				switch ch := (ring.Change{Copy: one.ID, To: to, Filled: filled}); {
				case s.Range != ring.Full():
					changes = append(changes, meta.CopyChange{Name: db, ID: old.ID, Change: ch})
				case to == ring.StateFull:
					changes = append(changes, meta.CopyChange{Name: db, ID: old.ID, Change: ring.Change{Copy: one.ID, To: ring.StateLeaving}})
				}
			}
		}
		if err := leader.meta.ChangeCopies(c.t.Context(), changes); err != nil {
			c.t.Fatal(err)
		}
	}
	want := known().Generation
	c.settle(func() bool {
		for _, n := range c.nodes {
			m, ok := n.meta.Database(db)
			if !ok || m.Generation < want {
				return false
			}
			for _, r := range ring.Split(2) {
				if name := m.CopyName(r); slices.Contains(m.CopiesOn(n.name), name) && !n.disk.Copies.Has(name) {
					return false
				}
			}
		}
		return true
	})
}

// TestRequestsMeetASplit: a request that has begun before a shard was split brings each document
// to the half that it belongs to, and reads it from there.
func TestRequestsMeetASplit(t *testing.T) {
	for _, copies := range []int{1, 3} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d copies, gone %v", copies, gone), func(t *testing.T) { requestsMeetASplit(t, copies, gone) })
		}
	}
}

func requestsMeetASplit(t *testing.T, copies int, gone bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCouncil(t)
		n := c.nodes[0]
		if err := n.CreateDB(t.Context(), "pond", CreateOptions{N: copies, Q: 1}); err != nil {
			t.Fatal(err)
		}
		d, err := n.DB(t.Context(), "pond")
		if err != nil {
			t.Fatal(err)
		}
		c.splitAll("pond")
		for _, node := range c.nodes {
			if name := d.meta.CopyName(ring.Full()); gone && node.disk.Copies.Has(name) {
				if err := node.disk.Copies.Drop(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		var edits []shard.Edit
		for i := range 8 {
			edits = append(edits, shard.Edit{ID: fmt.Sprint("doc", i), Body: []byte(`{}`)})
		}
		for i, r := range update(t, d, UpdateOptions{NewEdits: true}, edits...) {
			if r.Err != nil || r.Accepted {
				t.Errorf("%s: %+v", edits[i].ID, r)
			}
		}
		one := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "toad", Body: []byte(`{}`)}) // in the upper half
		if one[0].Err != nil || ring.Hash("toad", false) < 1<<31 {
			t.Errorf("%+v", one)
		}
		synctest.Wait()
		m, _ := n.meta.Database("pond")
		halves := [2]int{}
		for _, e := range append(edits, shard.Edit{ID: "toad"}) {
			for i, r := range ring.Split(2) {
				belongs := r.Contains(ring.Hash(e.ID, false))
				if belongs {
					halves[i]++
				}
				for _, node := range c.nodes {
					if !slices.Contains(m.CopiesOn(node.name), m.CopyName(r)) {
						continue
					}
					_, err := node.disk.Open(t.Context(), shard.OpenRequest{Copy: m.CopyName(r), ID: e.ID})
					if belongs && err != nil || !belongs && !fault.Is(err, fault.NotFound) {
						t.Errorf("%s of %s on %s: %v", e.ID, r, node.name, err)
					}
				}
			}
			for r := 1; r <= 2; r++ {
				if _, err := d.Open(t.Context(), OpenOptions{ID: e.ID, R: r}); err != nil {
					t.Errorf("%s with r=%d: %v", e.ID, r, err)
				}
				if got, err := d.OpenRevs(t.Context(), OpenRevsOptions{ID: e.ID, All: true, R: r}); err != nil || len(got) != 1 {
					t.Errorf("%s with r=%d: %v, %v", e.ID, r, got, err)
				}
			}
		}
		if halves[0] == 0 || halves[1] == 0 {
			t.Fatalf("the halves have %v", halves)
		}
		items := make([]shard.PurgeItem, len(edits))
		for i, e := range edits {
			items[i].ID = e.ID
			got, err := d.Open(t.Context(), OpenOptions{ID: e.ID, R: 2})
			if err != nil {
				t.Fatal(err)
			}
			items[i].Revs = append(items[i].Revs, got.Rev)
		}
		done, err := d.Purge(t.Context(), 0, items)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range done {
			if p.Err != nil || p.Accepted || len(p.Purged) != 1 {
				t.Errorf("%+v", p)
			}
		}
	})
}
