package search

import (
	"testing"

	"divan/shard/ring"
	"divan/shard/search"
	"divan/shard/search/syntax"
)

// TestDependsOnRanges: pages by score belong to the ranges that were asked, and so do fuzzy words
// in any order; others do not.
func TestDependsOnRanges(t *testing.T) {
	byField := []search.Sort{{By: search.ByNumber, Field: "n"}}
	byBoth := []search.Sort{byField[0], {By: search.ByScore, Descending: true}}
	for _, c := range []struct {
		query string
		sort  []search.Sort
		want  bool
	}{
		{"frog", nil, true},
		{`n:[1 TO 2] AND (fro* OR "green frog"^2)`, nil, true},
		{"frog", byBoth, true},
		{"frog", byField, false},
		{"frug~", byField, true},
		{"fro* AND NOT n:[1 TO 2]", nil, false},
		{"*:*", nil, false},
		{"(", nil, false}, // which copies refuse
	} {
		for _, dialect := range []syntax.Dialect{syntax.Search, syntax.Nouveau} {
			if got := dependsOnRanges(&search.Request{Query: c.query, Sort: c.sort}, dialect); got != c.want {
				t.Errorf("%s by %v: %v", c.query, c.sort, got)
			}
		}
	}
}

// TestRangesOf: a split and a merge make other ranges, another copy of one does not.
func TestRangesOf(t *testing.T) {
	of := func(node string, ranges ...ring.Range) Ranges {
		var sources [][]ring.Replica
		for _, r := range ranges {
			sources = append(sources, []ring.Replica{{Range: r, Copy: ring.Copy{Node: node}}})
		}
		return rangesOf(sources)
	}
	two, four := ring.Split(2), ring.Split(4)
	split := of("a", four[0], four[1], two[1])
	switch {
	case of("a", two...) != of("b", two...):
		t.Error("ranges depend on the node")
	case of("a", two...) == split || split == of("a", four...) || of("a", ring.Full()) == of("a", two...):
		t.Error("other ranges are the same")
	case of("a") == AnyRanges:
		t.Error("no ranges are any")
	}
}

// TestContinue: a query goes on behind a place in its order.
func TestContinue(t *testing.T) {
	q := Query{}
	if !q.Continue(nil) || q.After != nil {
		t.Error("the start is a place")
	}
	if !q.Continue(&Place{search.Position{Order: []search.Value{{Number: 1}}, ID: "d"}, 7}) || q.After.ID != "d" || q.Asked != 7 {
		t.Errorf("%+v", q)
	}
	if q.Continue(&Place{search.Position{Order: make([]search.Value, 2)}, 7}) {
		t.Error("a place in another order is taken")
	}
}
