package clusterctl

import (
	"bytes"
	"testing"
)

// The output of a large plan is as short as that of a small one.
func TestPlanIsShort(t *testing.T) {
	p := &plan{
		TotalMoves: 100_000, Bytes: 3e12, MustMove: 2.5e12, Away: []string{"b@x"},
		Nodes: []nodeBytes{
			{Node: "a@x", Zone: "north", Before: 4e12, After: 2e12, Goal: 2e12},
			{Node: "b@x", Zone: "south", Before: 1e12, After: 1e12},
			{Node: "c@x", Removed: true, Before: 1e9},
			{Node: "d@x", Draining: true, Before: 1e6},
		},
	}
	for range plannedLimit {
		p.Moves = append(p.Moves, move{Database: "pond", Range: "00000000-7fffffff", From: "a@x", To: "d@x", Bytes: 3e7, Reason: "balance"})
		p.Left = append(p.Left, left{Database: "pond", Range: "00000000-7fffffff", Node: "d@x", Reason: "draining", Why: "each node has a copy of the range", Bytes: 1000})
	}
	p.Left[0] = left{Node: "a@x", Reason: "balance", Why: "no copy that may be moved is small enough", Bytes: 5e6}
	var out bytes.Buffer
	if err := p.print(&command{cfg: Config{Out: &out}}); err != nil {
		t.Fatal(err)
	}
	want := `NODE  ZONE      NOW   AFTER    GOAL  NOTE
a@x   north  4.0 TB  2.0 TB  2.0 TB  -
b@x   south  1.0 TB  1.0 TB     0 B  away: nothing moves from or to it
c@x   -      1.0 GB     0 B     0 B  removed
d@x   -      1.0 MB     0 B     0 B  draining

Left as they are:
  at least 1 node (a@x), 5.0 MB, balance: no copy that may be moved is small enough
  at least 999 copies (such as pond 00000000-7fffffff d@x), 999 kB, draining: each node has a copy of the range

100,000 copies to move, 3.0 TB (to balance the nodes takes at least 2.5 TB):
  DATABASE  RANGE              FROM  TO    SIZE  REASON
`
	for range plannedMoves {
		want += "  pond      00000000-7fffffff  a@x   d@x  30 MB  balance\n"
	}
	if want += "  and 99,990 more\n"; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
