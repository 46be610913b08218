package placer

import (
	"cmp"
	"slices"
)

// overlaps are the shards of a database whose ranges have points in common, as while one is
// split. There are few, or none.
type overlaps struct {
	any  []bool // of each shard: whether it has others
	with map[int32][]int32
}

// findOverlaps compares the ranges of each database.
func findOverlaps(c *Cluster) overlaps {
	out := overlaps{any: make([]bool, len(c.Shards)), with: map[int32][]int32{}}
	order := make([]int32, len(c.Shards))
	for i := range order {
		order[i] = int32(i)
	}
	byRange := func(i, j int32) int {
		a, b := &c.Shards[i], &c.Shards[j]
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Begin, b.Begin), cmp.Compare(i, j))
	}
	if !slices.IsSortedFunc(order, byRange) {
		slices.SortFunc(order, byRange)
	}
	for begin := 0; begin < len(order); {
		end, last := begin+1, c.Shards[order[begin]].End
		for end < len(order) && c.Shards[order[end]].Database == c.Shards[order[begin]].Database && c.Shards[order[end]].Begin <= last {
			last = max(last, c.Shards[order[end]].End)
			end++
		}
		out.add(c, order[begin:end])
		begin = end
	}
	return out
}

// add notes which shards of some overlap.
func (o *overlaps) add(c *Cluster, shards []int32) {
	for _, i := range shards {
		for _, j := range shards {
			if i != j && c.Shards[i].Overlaps(c.Shards[j].Range) {
				o.any[i] = true
				o.with[i] = append(o.with[i], j)
			}
		}
	}
}

// around returns the other shards that have points of one; none for nearly all.
func (o *overlaps) around(shard int32) []int32 {
	if !o.any[shard] {
		return nil
	}
	return o.with[shard]
}

// points returns a point for each part of the range of a shard that the same shards hold.
func (s *state) points(shard int32) []uint32 {
	r := s.in.Shards[shard].Range
	out := []uint32{r.Begin}
	for _, o := range s.overlap.around(shard) {
		other := s.in.Shards[o].Range
		if other.Begin > r.Begin {
			out = append(out, other.Begin)
		}
		if other.End < r.End {
			out = append(out, other.End+1)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// at calls f for each copy that holds a point of a shard.
func (s *state) at(shard int32, point uint32, f func(c int32)) {
	visit := func(sh int32) {
		for c, end := s.copies(sh); c < end; c++ {
			f(c)
		}
	}
	visit(shard)
	for _, o := range s.overlap.around(shard) {
		if s.in.Shards[o].Contains(point) {
			visit(o)
		}
	}
}

// sources is how many copies there are of the point of a shard that has the fewest.
func (s *state) sources(shard int32) int {
	fewest := -1
	for _, p := range s.points(shard) {
		n := 0
		s.at(shard, p, func(c int32) {
			if f := s.from[c]; f != None && !s.nodes[f].lost {
				n++
			}
		})
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
}
