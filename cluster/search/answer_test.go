package search

import (
	"math"
	"testing"

	"divan/shard/search"
)

// TestFaultyAnswers: an answer that does not fit the request, or has numbers that JSON has not,
// is refused.
func TestFaultyAnswers(t *testing.T) {
	order := func(n ...float64) (out []search.Value) {
		for _, v := range n {
			out = append(out, search.Value{Number: v})
		}
		return out
	}
	req := &search.Request{}
	if err := sameParts(req, order(1)); err != nil {
		t.Error(err)
	}
	for _, of := range [][]search.Value{order(), order(1, 2), order(math.NaN()), order(math.Inf(1)), order(math.Inf(-1))} {
		if sameParts(req, of) == nil {
			t.Errorf("%v is taken", of)
		}
	}
	grouped := &search.Request{Group: &search.Group{Names: []search.GroupName{{By: "x"}}}}
	for name, of := range map[string]struct {
		req *search.Request
		a   search.Answer
	}{
		"counts that were not asked for": {req, search.Answer{Counts: []search.FieldCounts{{}}}},
		"groups that were not asked for": {req, search.Answer{Groups: []search.GroupHits{{}}}},
		"hits of a group without order":  {grouped, search.Answer{Groups: []search.GroupHits{{Hits: []search.Hit{{}}}}}},
	} {
		if wellFormed(of.req, &of.a) == nil {
			t.Errorf("%s are taken", name)
		}
	}
}
