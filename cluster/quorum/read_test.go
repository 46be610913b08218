package quorum

import (
	"testing"

	"pgregory.net/rapid"

	"divan/storage/doc"
)

// path builds a path from ids, newest first.
func path(ids ...string) doc.Path { return doc.Path{Start: uint64(len(ids)), IDs: ids} }

// TestReadOrder checks that the order in which the copies answer never changes
// the revision that is given once all have.
func TestReadOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := []Answer{
			{Path: path("a")},
			{Path: path("b", "a")},
			{Path: path("c", "a")},
			{Path: path("d", "b", "a")},
			{Path: path("e", "b", "a"), Deleted: true},
		}
		copies := rapid.IntRange(1, 5).Draw(t, "copies")
		r := rapid.IntRange(copies, 9).Draw(t, "r") // all are heard
		answers := rapid.SliceOfN(rapid.IntRange(-1, len(tree)-1), copies, copies).Draw(t, "answers")
		ask := func(order []int) (Verdict, doc.Rev) {
			q := NewRead(copies, r)
			for _, i := range order {
				if answers[i] < 0 {
					q.Refused(errDown)
				} else {
					q.Found(i, tree[answers[i]])
				}
			}
			v, from, _ := q.Verdict()
			if v == Asking {
				t.Fatal("all have answered")
			}
			if v == Unread {
				return v, doc.Rev{}
			}
			return v, tree[answers[from]].rev()
		}
		order := make([]int, copies)
		for i := range order {
			order[i] = i
		}
		v1, rev1 := ask(order)
		v2, rev2 := ask(rapid.Permutation(order).Draw(t, "order"))
		if v1 != v2 || rev1 != rev2 {
			t.Fatalf("%d %s in one order, %d %s in another", v1, rev1, v2, rev2)
		}
	})
}
