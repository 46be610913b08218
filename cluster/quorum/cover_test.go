package quorum

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const (
	half   = 1 << 31
	top    = math.MaxUint32
	middle = half - 1
)

func TestCover(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spans []Span
		want  []int // nil: none
	}{
		{name: "nothing", spans: nil},
		{name: "whole", spans: []Span{{0, top, 0}}, want: []int{0}},
		{name: "two halves in any order", spans: []Span{{half, top, 0}, {0, middle, 0}}, want: []int{1, 0}},
		{name: "a gap", spans: []Span{{0, middle - 1, 0}, {half, top, 0}}},
		{name: "only the end", spans: []Span{{half, top, 0}}},
		{name: "only the beginning", spans: []Span{{0, middle, 0}}},
		{name: "the cheaper copy", spans: []Span{{0, top, 1}, {0, top, 0}}, want: []int{1}},
		{name: "the first of two equal ones", spans: []Span{{0, top, 1}, {0, top, 1}}, want: []int{0}},
		{name: "split and whole: whole, fewer spans", spans: []Span{{0, middle, 0}, {half, top, 0}, {0, top, 0}}, want: []int{2}},
		{name: "split and whole: split, cheaper", spans: []Span{{0, top, 1}, {0, middle, 0}, {half, top, 0}}, want: []int{1, 2}},
		{name: "half of the split is gone", spans: []Span{{0, top, 5}, {0, middle, 0}}, want: []int{0}},
		{name: "one range split in two, the other whole", spans: []Span{
			{half, top, 0}, {0, middle / 2, 0}, {middle/2 + 1, middle, 0},
		}, want: []int{1, 2, 0}},
		{name: "a span that begins after its end is no span", spans: []Span{{0, middle, 0}, {half, middle, 0}, {half, top, 0}}, want: []int{0, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := Cover(tc.spans)
			if ok != (tc.want != nil) || !slices.Equal(got, tc.want) {
				t.Fatalf("got %v, %v, want %v", got, ok, tc.want)
			}
		})
	}
}

// TestCoverProperties splits ranges at random, throws copies away at random,
// and compares with a search through all routes.
func TestCoverProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []Span
		var add func(begin, end uint32, depth int)
		add = func(begin, end uint32, depth int) {
			for range rapid.IntRange(0, 2).Draw(t, "copies") {
				spans = append(spans, Span{Begin: begin, End: end, Cost: rapid.IntRange(0, 2).Draw(t, "cost")})
			}
			if depth < 3 && rapid.Bool().Draw(t, "split") {
				mid := begin + (end-begin)/2
				add(begin, mid, depth+1)
				add(mid+1, end, depth+1)
			}
		}
		add(0, top, 0)
		spans = rapid.Permutation(spans).Draw(t, "order")
		got, ok := Cover(spans)
		best, possible := search(spans, 0)
		if ok != possible {
			t.Fatalf("Cover says %v, the search %v", ok, possible)
		}
		if !ok {
			return
		}
		next, cost := uint64(0), 0
		for _, i := range got {
			if uint64(spans[i].Begin) != next {
				t.Fatalf("gap or overlap at %08x", next)
			}
			next, cost = uint64(spans[i].End)+1, cost+spans[i].Cost
		}
		if next != 1<<32 || cost != best {
			t.Fatalf("ends at %x with cost %d, want cost %d", next, cost, best)
		}
	})
}

// search returns the smallest cost of a cover from a point on.
func search(spans []Span, from uint64) (cost int, ok bool) {
	if from == 1<<32 {
		return 0, true
	}
	for _, s := range spans {
		if uint64(s.Begin) != from {
			continue
		}
		if rest, found := search(spans, uint64(s.End)+1); found && (!ok || rest+s.Cost < cost) {
			cost, ok = rest+s.Cost, true
		}
	}
	return cost, ok
}
