package view

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestSummary: what is held of the upper levels gives the sums that reading them
// gives, and is of the version of the index that is asked.
func TestSummary(t *testing.T) {
	n := start(t)
	d := define(t, `{"views":{
		"sum":{"map":"function (doc) { emit(doc.n, doc.n); }","reduce":"_sum"},
		"fails":{"map":"function (doc) { emit(doc.n, doc.n); }","reduce":"function (keys, values, again) { if (values.indexOf(7) >= 0) { throw ['fatal', 'seven', '7']; } return sum(values); }"}}}`)
	n.put(1, numbered(0, 5000)...)
	rnd := rand.New(rand.NewPCG(5, 6))
	for round := range 3 {
		n.query(oneRow(d, "sum"))
		use, x, err := n.views.acquire(context.Background(), copyName, n.views.spec(copyName, d))
		must(t, err)
		snap, err := use.Index.Snapshot()
		must(t, err)
		var known *summary
		for range 2 + 5000/32/topsWorth { // as often as it takes
			known, err = x.summaryOf(snap)
			must(t, err)
		}
		top, err := x.topsOf(known, snap, &x.trees[0])
		must(t, err)
		if top == nil || top.lowest != 1 || known != x.known.Load() || known.pos.Seq != uint64(5000+round) {
			t.Fatalf("%+v of %+v", top, known.pos)
		}
		with, without := newSummer(snap, &x.trees[0], 0, known.st.trees[0].height), newSummer(snap, &x.trees[0], 0, known.st.trees[0].height)
		with.tops = top
		for range 500 {
			lo := rnd.IntN(5000)
			hi := lo + rnd.IntN(5000)
			a, b := key(t, fmt.Sprint(lo)), key(t, fmt.Sprint(hi))
			if rnd.IntN(9) == 0 {
				b = nil
			}
			for i := range x.trees[0].reducers {
				with.reducer, with.function = i, x.trees[0].reducers[i].function
				without.reducer, without.function = i, with.function
				errWith, errWithout := with.sum(a, b), without.sum(a, b)
				if (errWith == nil) != (errWithout == nil) || errWith == nil && with.rows != without.rows {
					t.Fatalf("%d to %d: %d rows, %v; %d rows, %v", lo, hi, with.rows, errWith, without.rows, errWithout)
				}
				if errWith != nil {
					continue
				}
				one, err := with.state(nil)
				must(t, err)
				other, err := without.state(nil)
				must(t, err)
				if string(one) != string(other) {
					t.Fatalf("%d to %d: %q, not %q", lo, hi, one, other)
				}
			}
		}
		if held := n.views.held.Load(); held == 0 || held > 64*5000/32 {
			t.Errorf("%d bytes of blocks are held", held)
		}
		must(t, with.Close())
		must(t, without.Close())
		snap.Close()
		use.Release()
		n.put(2+round, edit("d00100", fmt.Sprintf(`{"n":%d}`, 4000+round)))
	}
	n.query(oneRow(d, "sum"))
	if held := n.views.held.Load(); held != 0 {
		t.Errorf("%d bytes of blocks are held of an older version", held)
	}
}
