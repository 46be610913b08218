package ring

import (
	"cmp"
	"slices"
)

// While a database is split or merged the ranges of its shards overlap: what is said of a
// range holds at each of its points.

// Overlaps reports whether two ranges have a point in common.
func (r Range) Overlaps(o Range) bool { return r.Begin <= o.End && o.Begin <= r.End }

// Intersect returns the points that two ranges have in common; false when there are none.
func (r Range) Intersect(o Range) (Range, bool) {
	return Range{max(r.Begin, o.Begin), min(r.End, o.End)}, r.Overlaps(o)
}

// Includes reports whether a range has all points of another one.
func (r Range) Includes(o Range) bool { return r.Begin <= o.Begin && o.End <= r.End }

// Everywhere reports whether f is true of the copies that hold a point, for each point of a
// range. f must not keep what it gets.
func Everywhere(shards []Shard, r Range, f func(copies []Copy) bool) bool {
	var over []Shard
	plain := true
	for _, s := range shards {
		if s.Overlaps(r) {
			over = append(over, s)
			plain = plain && s.Range == r
		}
	}
	if plain && len(over) == 1 {
		return f(over[0].Copies)
	}
	cuts := []uint32{r.Begin}
	for _, s := range over {
		if s.Begin > r.Begin {
			cuts = append(cuts, s.Begin)
		}
		if s.End < r.End {
			cuts = append(cuts, s.End+1)
		}
	}
	slices.Sort(cuts)
	var copies []Copy
	for _, at := range slices.Compact(cuts) {
		copies = copies[:0]
		for _, s := range over {
			if s.Contains(at) {
				copies = append(copies, s.Copies...)
			}
		}
		if !f(copies) {
			return false
		}
	}
	return true
}

// anyFull reports whether there is a full copy among some.
func anyFull(copies []Copy) bool {
	return slices.ContainsFunc(copies, func(c Copy) bool { return c.State == StateFull })
}

// FullBeside reports whether each point of the range of a copy has another full copy.
func FullBeside(shards []Shard, r Range, one Copy) bool {
	return Everywhere(shards, r, func(copies []Copy) bool {
		return slices.ContainsFunc(copies, func(c Copy) bool { return c.State == StateFull && c != one })
	})
}

// Superfluous reports whether a copy that joins on a node can never be full: the node has a full one of
// some of its points, which cannot leave, as it has more than all that come there. That of a lost
// node may be such, on the one that replaces it ([Replace]).
func Superfluous(shards []Shard, r Range, node string) bool {
	comes := func(c Copy) bool { return c.Node == node && (c.State == StateJoining || c.State == StateCopying) }
	return slices.ContainsFunc(shards, func(s Shard) bool {
		c, here := s.CopyOn(node)
		return here && c.State == StateFull && s.Overlaps(r) &&
			!Everywhere(shards, s.Range, func(copies []Copy) bool { return slices.ContainsFunc(copies, comes) })
	})
}

// Filled reports whether a joining copy of a range has all that was acknowledged when these
// full copies have filled it: more than half of those that hold each point, whichever copies leave
// for others that came instead of them.
func Filled(shards []Shard, r Range, by []uint64) bool {
	return Everywhere(shards, r, func(copies []Copy) bool {
		full := slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return c.State != StateFull })
		pairs, n := 0, 0
		for _, c := range full {
			if c.Instead != "" && slices.ContainsFunc(full, func(o Copy) bool { return o.Node == c.Instead }) {
				pairs++
			}
			if slices.Contains(by, c.ID) {
				n++
			}
		}
		return n > (len(full)-pairs)/2+pairs
	})
}

// Dispensable reports whether nothing that was acknowledged is missed without a full copy: each point
// of its range has another full one, and none that is still being filled or hands over. One that is
// being filled may have taken the place of a copy that had what a majority had to have; until it is
// full, each of the others may be the last that has an acknowledged edit. So may one that hands over.
func Dispensable(shards []Shard, r Range, one Copy) bool {
	return dispensable(shards, r, func(c Copy) bool { return c == one })
}

// NodeDispensable is Dispensable for all full copies of a node together, and those that have yet to hand over to
// the one that came instead of them.
func NodeDispensable(shards []Shard, node string) bool {
	return dispensableAt(shards, node, func(Range) bool { return true })
}

// dispensableAt is NodeDispensable for the copies of some ranges.
func dispensableAt(shards []Shard, node string, among func(Range) bool) bool {
	for _, s := range shards {
		c, here := s.CopyOn(node)
		_, moved := s.Heir(node)
		if here && among(s.Range) && (c.State == StateFull || moved) && !dispensable(shards, s.Range, func(c Copy) bool { return c.Node == node }) {
			return false
		}
	}
	return true
}

func dispensable(shards []Shard, r Range, without func(c Copy) bool) bool {
	return Everywhere(shards, r, func(copies []Copy) bool {
		other := false
		for _, o := range copies {
			switch {
			case without(o) || o.State == StateCopying:
			case o.State == StateJoining && comesBeside(copies, o): // it has not taken the place of another copy yet
			case o.State == StateLeaving && slices.ContainsFunc(copies, func(c Copy) bool { return without(c) && c.Instead == o.Node }):
				// The one that goes came instead of it: what it has to hand over it hands to others.
			case o.State != StateFull:
				return false
			default:
				other = true
			}
		}
		return other
	})
}

// comesBeside reports whether one of the copies of a point comes instead of another one that is there.
func comesBeside(copies []Copy, one Copy) bool {
	return one.Instead != "" && slices.ContainsFunc(copies, func(c Copy) bool { return c.Node == one.Instead && c.State.Used() })
}

// Visible returns the shards as the API shows them: those with a full copy, without copies that
// coordinators do not know.
func Visible(shards []Shard) []Shard {
	hidden := func(c Copy) bool { return !c.State.Used() }
	odd := func(s Shard) bool { return !anyFull(s.Copies) || slices.ContainsFunc(s.Copies, hidden) }
	if !slices.ContainsFunc(shards, odd) {
		return shards
	}
	var out []Shard
	for _, s := range shards {
		if anyFull(s.Copies) {
			s.Copies = slices.DeleteFunc(slices.Clone(s.Copies), hidden)
			out = append(out, s)
		}
	}
	return out
}

// Valid reports whether shards can be a map: sorted, each range once, no node twice in one,
// and a full copy of each point of the ring.
func Valid(shards []Shard) bool {
	for i, s := range shards {
		if s.Begin > s.End || len(s.Copies) == 0 || i > 0 && byRange(shards[i-1], s) >= 0 {
			return false
		}
		for j, c := range s.Copies {
			if s.at(c.Node) != j || c.State >= StateGone {
				return false
			}
		}
	}
	return Everywhere(shards, Full(), anyFull)
}

// byRange orders shards: of two that begin at one point the shorter comes first.
func byRange(a, b Shard) int {
	return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
}
