package cluster

import (
	"errors"
	"slices"
	"testing"

	"divan/shard"
	"divan/storage/doc"
)

// TestRevisionsNamedTwice: each is answered once, at its first place, whether
// the copies agree, differ, or the one that has it is asked last.
func TestRevisionsNamedTwice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up := w.down(node2, node3)
		second := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte(`{"n":2}`)})[0].Rev
		up()
		none := doc.Rev{Pos: 2, ID: "none"}
		named := []doc.Rev{none, second, first, none, second, first, second}
		for _, copies := range []string{"differ", "agree"} { // the first read repairs them
			for _, tc := range []struct {
				from   *DB
				r      int
				latest bool
				want   []doc.Rev
			}{
				{d, 1, false, []doc.Rev{none, second, first}},
				{d, 3, false, []doc.Rev{none, second, first}},
				{d, 3, true, []doc.Rev{none, second}},
				{d.ordered(node2, node3, node1).without(node1), 1, false, []doc.Rev{none, second, first}},
			} {
				got, err := tc.from.OpenRevs(t.Context(), OpenRevsOptions{ID: "a", Revs: named, Latest: tc.latest, R: tc.r})
				var revs []doc.Rev
				for _, r := range got {
					revs = append(revs, r.Rev)
				}
				if err != nil || !slices.Equal(revs, tc.want) {
					t.Errorf("copies %s, r=%d, latest=%t: %v, %v", copies, tc.r, tc.latest, revs, err)
				}
			}
			w.settleWrites()
		}
	})
}

// TestRevisionsOfCopiesThatRefuse: a copy that is being rebuilt does not count
// as one that has answered. Another one is asked in its place, and what the
// others say counts, also that there is nothing.
func TestRevisionsOfCopiesThatRefuse(t *testing.T) {
	for _, tc := range []struct{ behind, rebuilt string }{{node1, node2}, {node1, node1}, {node2, node1}, {node2, node3}} {
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
			w.settleWrites()
			second := put(t, d.ordered(node1, node2, node3).without(tc.behind), "a", first, `{"n":2}`)
			w.settleWrites()
			w.joinAgain(d.routing.Owner("a").Copies[0].Name, tc.rebuilt)
			got, errs := d.ordered(node1, node2, node3).OpenRevsMany(t.Context(), []OpenRevsOptions{
				{ID: "a", All: true}, {ID: "none", All: true}, {ID: "a", Revs: []doc.Rev{second}},
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatalf("%+v: %v", tc, err)
			}
			for _, i := range []int{0, 2} {
				if len(got[i]) != 1 || got[i][0].Rev != second || got[i][0].Doc == nil {
					t.Errorf("%+v: answer %d is %+v", tc, i, got[i])
				}
			}
			if len(got[1]) != 0 {
				t.Errorf("%+v: %+v", tc, got[1])
			}
			w.settleWrites()
		})
	}
}
