package view

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"divan/shard"
)

// grouped are views whose groups have several rows.
const grouped = `{"views":{
	"pairs":{"map":"function (doc) { emit([doc.n % 10, doc.n], doc.n); }","reduce":"_sum"},
	"tens":{"map":"function (doc) { emit(doc.n % 10, doc.n); }","reduce":"function (keys, values, again) { if (values.indexOf(7) >= 0) { throw ['fatal', 'seven', '7']; } return sum(values); }"}}}`

// keptOf returns which levels each tree of an index keeps, as bits.
func (n *node) keptOf(d *Definition) (out []uint8) {
	n.tb.Helper()
	use, x, err := n.views.acquire(context.Background(), copyName, n.views.spec(copyName, d))
	must(n.tb, err)
	defer use.Release()
	snap, err := use.Index.Snapshot()
	must(n.tb, err)
	defer snap.Close()
	st, err := readState(snap, len(x.trees), d.collation())
	must(n.tb, err)
	for i := range st.trees {
		out = append(out, st.trees[i].kept)
	}
	return out
}

// TestGroupsComeAndGo: an index that grows by small updates keeps groups once they
// are large, and gives them up when they have become small.
func TestGroupsComeAndGo(t *testing.T) {
	n := start(t)
	n.views.long = 100
	d := define(t, grouped)
	sums := func() []string {
		t.Helper()
		req := request(d, "pairs")
		req.Reduce, req.GroupLevel = true, 1
		return n.query(req).rows
	}
	for i := range 30 {
		n.put(1, numbered(10*i, 10*i+10)...)
		sums()
		n.checkBlocks(t, d)
	}
	if kept := n.keptOf(d); !slices.Equal(kept, []uint8{1 << 1, 1 << exactGroups}) {
		t.Errorf("300 rows in groups of 30: kept %b", kept)
	}
	if got, want := sums()[9], fmt.Sprintf("[9] %d", 30*9+10*(29*30/2)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := range 6 {
		var gone []shard.Edit
		for _, e := range numbered(50*i, 50*i+50) {
			if e.ID[len(e.ID)-2:] >= "20" {
				e.Deleted = true
				gone = append(gone, e)
			}
		}
		n.put(2, gone...)
		sums()
		n.checkBlocks(t, d)
	}
	if kept := n.keptOf(d); kept[0] != 1<<1 {
		t.Errorf("60 rows in groups of 6: kept %b", kept)
	}
	for i := range 2 {
		gone := numbered(100*i, 100*i+20)
		for j := range gone {
			gone[j].Deleted = true
		}
		n.put(2, gone...)
		sums()
		n.checkBlocks(t, d)
	}
	if kept := n.keptOf(d); !slices.Equal(kept, []uint8{0, 0}) {
		t.Errorf("20 rows in groups of 2: kept %b", kept)
	}
	if got := sums(); len(got) != 10 || got[9] != "[9] 428" {
		t.Errorf("%v", got)
	}
}

// TestGroupThatFails: a failure of one group is the error of the request for it,
// and of no other.
func TestGroupThatFails(t *testing.T) {
	n := start(t)
	n.views.long = 100
	d := define(t, grouped)
	n.put(1, numbered(0, 300)...)
	ask := func(lo, hi string) ([]string, error) {
		req := request(d, "tens")
		req.Reduce, req.GroupLevel = true, GroupExact
		req.Ranges = []KeyRange{{Lo: Bound{Key: key(t, lo)}, Hi: Bound{Key: key(t, hi)}}}
		a, err := n.tryQuery(req)
		return a.rows, err
	}
	for range 2 {
		rows, err := ask("8", "9")
		must(t, err)
		if want := []string{"8 4590", "9 4620"}; !slices.Equal(rows, want) {
			t.Errorf("%q, want %q", rows, want)
		}
		if rows, err := ask("0", "9"); err == nil {
			t.Errorf("a group that fails: %q", rows)
		}
		if kept := n.keptOf(d); kept[1] != 1<<exactGroups {
			t.Errorf("kept %b", kept)
		}
		n.put(2, numbered(8, 9)...) // the same again, by a short update
		n.put(2, numbered(17, 18)...)
	}
	n.put(2, edit("d00007", `{"n":17}`))
	if rows, err := ask("7", "7"); err != nil || !slices.Equal(rows, []string{"7 4570"}) {
		t.Errorf("a group that does not fail any more: %q, %v", rows, err)
	}
}
