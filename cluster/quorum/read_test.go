package quorum

import (
	"testing"

	"pgregory.net/rapid"

	"divan/storage/doc"
	"divan/storage/fault"
)

// path builds a path from ids, newest first.
func path(ids ...string) doc.Path { return doc.Path{Start: uint64(len(ids)), IDs: ids} }

func TestRead(t *testing.T) {
	missing := fault.New(fault.NotFound, "missing")
	deleted := fault.New(fault.Deleted, "deleted")
	one, two := Answer{Path: path("a")}, Answer{Path: path("b", "a")}
	other := Answer{Path: path("c", "a")}
	gone := Answer{Path: path("z", "b", "a"), Deleted: true}
	type heard struct {
		answer Answer
		err    error
	}
	for _, tc := range []struct {
		name   string
		copies int
		r      int
		heard  []heard
		want   Verdict
		from   int
		reason string
	}{
		{name: "nothing yet", copies: 3, want: Asking},
		{name: "one copy", copies: 1, heard: []heard{{answer: one}}, want: Agreed},
		{name: "one copy without it", copies: 1, heard: []heard{{err: missing}}, want: Absent, reason: "missing"},
		{name: "two agree", copies: 3, heard: []heard{{answer: two}, {answer: two}}, want: Agreed},
		{name: "r=1", copies: 3, r: 1, heard: []heard{{answer: one}}, want: Agreed},
		{name: "r=9 is all", copies: 3, r: 9, heard: []heard{{answer: two}, {answer: two}}, want: Asking},
		{name: "one of two", copies: 3, heard: []heard{{answer: one}}, want: Asking},
		{name: "older and newer, the third is not needed", copies: 3, heard: []heard{{answer: one}, {answer: two}}, want: Newest, from: 1},
		{name: "missing and newer, the third is not needed", copies: 3, heard: []heard{{err: missing}, {answer: two}}, want: Newest, from: 1},
		{name: "one is down, another takes its place", copies: 3, heard: []heard{{err: errDown}, {answer: two}}, want: Asking},
		{name: "branches of two, the third is not needed", copies: 3, heard: []heard{{answer: two}, {answer: other}}, want: Diverged, from: 1},
		{name: "all heard, one newer", copies: 3, r: 3, heard: []heard{{answer: one}, {answer: two}, {answer: one}}, want: Newest, from: 1},
		{name: "all heard, one has it", copies: 2, heard: []heard{{err: missing}, {answer: one}}, want: Newest, from: 1},
		{name: "the others are down", copies: 3, heard: []heard{{err: errDown}, {answer: one}, {err: errDown}}, want: Agreed, from: 1},
		{name: "two branches", copies: 2, heard: []heard{{answer: two}, {answer: other}}, want: Diverged, from: 1},
		{name: "a live branch beats a longer deleted one", copies: 2, heard: []heard{{answer: gone}, {answer: other}}, want: Diverged, from: 1},
		{name: "deleted later", copies: 2, heard: []heard{{answer: two}, {answer: gone}}, want: Newest, from: 1},
		{name: "nobody has it", copies: 3, heard: []heard{{err: missing}, {err: missing}}, want: Absent, reason: "missing"},
		{name: "deleted says more than missing", copies: 2, heard: []heard{{err: missing}, {err: deleted}}, want: Absent, reason: "deleted"},
		{name: "down says less than missing", copies: 2, heard: []heard{{err: errDown}, {err: missing}}, want: Absent, reason: "missing"},
		{name: "nobody answers", copies: 2, heard: []heard{{err: errDown}, {err: errDown}}, want: Unread, reason: "down"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := NewRead(tc.copies, tc.r)
			for i, h := range tc.heard {
				if h.err != nil {
					q.Refused(h.err)
				} else {
					q.Found(i, h.answer)
				}
			}
			got, from, err := q.Verdict()
			if got != tc.want || from != tc.from || fault.Reason(err) != tc.reason {
				t.Fatalf("got %d from %d, %v; want %d from %d, %q", got, from, err, tc.want, tc.from, tc.reason)
			}
		})
	}
}

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
