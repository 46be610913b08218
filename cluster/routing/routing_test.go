package routing

import (
	"fmt"
	"slices"
	"testing"

	"divan/cluster/meta"
	"divan/shard"
	"divan/shard/ring"
)

// halfSplit is a map of two ranges with three copies each, of whose first range the copy on
// n2 has been split, while one on n4 is being filled.
func halfSplit() *meta.Database {
	both := ring.Split(2)
	quarters := ring.Split(4)
	full := func(id uint64, node string) ring.Copy { return ring.Copy{ID: id, Node: node} }
	return &meta.Database{Name: "db", Generation: 9, Shards: []ring.Shard{
		{Range: both[0], Copies: []ring.Copy{full(1, "n1"), full(3, "n3")}},
		{Range: quarters[0], Copies: []ring.Copy{full(21, "n2"), {ID: 41, Node: "n4", State: ring.StateJoining}}},
		{Range: quarters[1], Copies: []ring.Copy{full(22, "n2")}},
		{Range: both[1], Copies: []ring.Copy{full(5, "n1"), full(6, "n2"), full(7, "n3")}},
	}}
}

func TestTable(t *testing.T) {
	table := NewTable(halfSplit(), "n3")
	if len(table.Routes) != 3 {
		t.Fatalf("%d routes, want the two halves of the split range and the other one", len(table.Routes))
	}
	for i := range table.Routes {
		r := &table.Routes[i]
		if len(r.Copies) != 3 || r.Near[0].Node != "n3" || len(r.Joining) != map[int]int{0: 1}[i] {
			t.Errorf("route %d: %+v", i, r)
		}
	}
	ids := func(all []ring.Replica) (out []uint64) {
		for _, one := range all {
			out = append(out, one.ID)
		}
		slices.Sort(out)
		return out
	}
	if got := ids(table.All()); !slices.Equal(got, []uint64{1, 3, 5, 6, 7, 21, 22, 41}) {
		t.Errorf("all copies: %v", got)
	}
	if got := ids(table.Full()); !slices.Equal(got, []uint64{1, 3, 5, 6, 7, 21, 22}) {
		t.Errorf("full copies: %v", got)
	}
	if got := ids(table.SameRange(table.Routes[1].Copies[0])); !slices.Equal(got, []uint64{1, 3}) {
		t.Errorf("copies of the range that is not split: %v", got)
	}
}

// TestGroup: each document is in the group of the route that holds it, in its order.
func TestGroup(t *testing.T) {
	table := NewTable(halfSplit(), "n1")
	edits := make([]shard.Edit, 100)
	for i := range edits {
		edits[i].ID = fmt.Sprintf("doc%d", i)
	}
	seen := 0
	groups := table.Group(len(edits), func(i int) string { return edits[i].ID })
	for _, g := range groups {
		if !slices.IsSorted(g.Items) {
			t.Errorf("order of %v", g.Items)
		}
		own := make([]shard.Edit, len(g.Items))
		for k, i := range g.Items {
			own[k] = edits[i]
			if h := ring.Hash(edits[i].ID, false); !g.Route.Contains(h) || table.At(h) != g.Route {
				t.Errorf("%s is in the group of %v", edits[i].ID, g.Route.Range)
			}
		}
		if table.SoleOwner(own) != g.Route {
			t.Errorf("the owner of all of %v is another one", g.Route.Range)
		}
		seen += len(g.Items)
	}
	if len(groups) != 3 || seen != len(edits) || table.SoleOwner(edits) != nil {
		t.Errorf("%d groups of %d edits", len(groups), seen)
	}
}
