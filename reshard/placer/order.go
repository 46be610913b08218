package placer

import (
	"cmp"
	"slices"
)

// pair has copies of one shard, which hold the same, exchange where repairs send them when one of
// them stays in its zone thereby. So no zone has more copies meanwhile than before or
// afterwards. The balance comes later, for their bytes may differ.
func (s *state) pair() {
	byShard := slices.Clone(s.moved)
	slices.Sort(byShard) // copies of a shard have numbers that follow one another
	for i, c := range byShard {
		for _, o := range byShard[i+1:] {
			if s.shard[o] != s.shard[c] {
				break
			}
			s.exchange(c, o)
		}
	}
}

// exchange exchanges the goals of two copies if that lets one stay in its zone.
func (s *state) exchange(a, b int32) {
	stay := func(c, to int32) bool { return s.leaves(c) == s.zone(to) }
	if stay(a, s.to[a]) || stay(b, s.to[b]) || !stay(a, s.to[b]) && !stay(b, s.to[a]) {
		return
	}
	toA, toB := s.to[a], s.to[b]
	s.move(a, toB, s.reason[a])
	s.move(b, toA, s.reason[b])
}

// moves returns the moves, the most urgent ones first; of copies that are lost first those of
// which the fewest others are left.
func (s *state) moves() []Move {
	out := make([]Move, 0, len(s.moved))
	var others []int // of each move, when it makes a lost copy anew
	for _, c := range s.moved {
		if s.to[c] == s.from[c] {
			continue
		}
		sh := s.shard[c]
		in := &s.in.Shards[sh]
		out = append(out, Move{
			Range: in.Range, Database: in.Database, Shard: sh,
			From: s.from[c], To: s.to[c], Reason: s.reason[c], Bytes: s.bytes[c],
		})
		others = append(others, 0)
		if s.reason[c] == Lost {
			others[len(others)-1] = s.sources(sh)
		}
	}
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(out[i].Reason, out[j].Reason), cmp.Compare(others[i], others[j]))
	})
	sorted := make([]Move, len(out))
	for i, at := range order {
		sorted[i] = out[at]
	}
	return sorted
}
