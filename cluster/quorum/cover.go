package quorum

import (
	"math"
	"slices"
)

// Span is a closed part of the ring, which runs from 0 to 2^32-1.
type Span struct {
	Begin, End uint32
	// Cost says how gladly this copy is read; the sum over the chosen ones is
	// made as small as possible. A copy on this node is cheap, one elsewhere
	// dear, one that cannot be read is left out by the caller.
	Cost int
}

// Cover chooses copies so that the chosen spans cover the ring exactly once,
// and returns their indexes in ring order; ok is false when no set does. Among
// several sets the one with the smallest total cost wins, then the one with
// fewer spans, then the one whose spans come earlier in the input. It is right
// also while only some copies of a range are split, when spans overlap: a
// split half is never combined with the whole.
func Cover(spans []Span) (chosen []int, ok bool) {
	if len(spans) == 1 && spans[0].Begin == 0 && spans[0].End == math.MaxUint32 {
		return []int{0}, true
	}
	order := make([]int, len(spans))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if spans[a].Begin < spans[b].Begin {
			return -1
		}
		if spans[a].Begin > spans[b].Begin {
			return 1
		}
		return 0
	})
	paths := walk(spans, order)
	p, ok := paths[1<<32]
	if !ok {
		return nil, false
	}
	chosen = make([]int, p.hops)
	for i := p.hops - 1; i >= 0; i-- {
		chosen[i] = p.span
		p = paths[uint64(spans[p.span].Begin)]
	}
	return chosen, true
}

// route is the best way to cover the ring from 0 up to some point.
type route struct {
	span       int // the last span
	cost, hops int
}

// walk returns for each point of the ring that can be reached by whole spans
// the best route to it. Spans are visited by their beginning, so that every
// route to a point is final before the point is left.
func walk(spans []Span, order []int) map[uint64]route {
	paths := make(map[uint64]route, len(spans)+1)
	paths[0] = route{span: -1}
	for _, i := range order {
		s := spans[i]
		from, ok := paths[uint64(s.Begin)]
		if !ok || s.End < s.Begin {
			continue
		}
		next := route{span: i, cost: from.cost + s.Cost, hops: from.hops + 1}
		to := uint64(s.End) + 1
		if old, ok := paths[to]; ok && (old.cost < next.cost || old.cost == next.cost && old.hops <= next.hops) {
			continue
		}
		paths[to] = next
	}
	return paths
}
