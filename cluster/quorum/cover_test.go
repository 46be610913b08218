package quorum

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

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
		add(0, math.MaxUint32, 0)
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
