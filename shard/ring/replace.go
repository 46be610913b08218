package ring

import (
	"cmp"
	"slices"
)

// Replace puts a new copy on one node in the place of each copy on another, and reports whether
// there was any. A range that both have copies of loses the old one. New copies join, unless a
// point of the range has no full one left: then what the old copy had is given up. Copies that
// coordinators do not know have no successor, and one that is about to be moved has that which
// comes instead: it joins, also when it was full. One that leaves for the old one joins again.
func Replace(shards []Shard, old, by string, ids *NewCopies) ([]Shard, bool) {
	return replace(shards, old, by, func(Range) bool { return true }, ids)
}

// replaceLost is Replace for the copy of one range, and those of the same node that overlap with
// it. It reports false when there is none, when something may be missed without them, and when the
// other node has a copy of one of their points, unless it is the one that comes instead, or leaves
// for the one that is lost.
func replaceLost(shards []Shard, a *Addition, ids *NewCopies) ([]Shard, bool) {
	ranges := closure(shards, a.Range, a.Instead)
	for _, r := range ranges {
		for _, s := range shards {
			c, there := s.CopyOn(a.Node)
			if !there || !s.Overlaps(r) {
				continue
			}
			lost, _ := s.CopyOn(a.Instead)
			heir, back := c.Instead == a.Instead, c.State == StateLeaving && lost.Instead == a.Node
			if s.Range != a.Range || !heir && !back {
				return nil, false
			}
		}
	}
	among := func(r Range) bool { return slices.Contains(ranges, r) }
	if a.Begin > a.End || !among(a.Range) || !dispensableAt(shards, a.Instead, among) {
		return nil, false
	}
	return replace(shards, a.Instead, a.Node, among, ids)
}

// closure returns the ranges of the copies of a node that overlap with a range, or with those that do.
func closure(shards []Shard, r Range, node string) []Range {
	out := []Range{}
	for at := -1; at < len(out); at++ {
		if at >= 0 {
			r = out[at]
		}
		for _, s := range shards {
			if s.On(node) && s.Overlaps(r) && !slices.Contains(out, s.Range) {
				out = append(out, s.Range)
			}
		}
	}
	return out
}

// replace is Replace for the copies of some ranges, with which no other of the old node overlaps.
func replace(shards []Shard, old, by string, among func(Range) bool, ids *NewCopies) ([]Shard, bool) {
	type place struct {
		Range
		at  int
		was Copy
	}
	var left []place
	out := slices.Clone(shards)
	for i, s := range shards {
		at := s.at(old)
		if at < 0 || !among(s.Range) {
			continue
		}
		out[i].Copies = slices.Delete(slices.Clone(s.Copies), at, at+1)
		left = append(left, place{s.Range, at, s.Copies[at]})
	}
	slices.SortStableFunc(left, func(a, b place) int { return cmp.Compare(a.was.State, b.was.State) }) // full ones first
	for _, p := range left {
		i := slices.IndexFunc(out, func(s Shard) bool { return s.Range == p.Range })
		s := &out[i]
		full := Everywhere(out, p.Range, anyFull)
		to := by
		if at := slices.IndexFunc(s.Copies, func(c Copy) bool { return c.Instead == old }); at >= 0 {
			c := &s.Copies[at]
			to = c.Node
			if c.State == StateFull && FullBeside(out, p.Range, *c) {
				c.ID, c.State = ids.Next(), StateJoining // it may lack what the old one had
			}
			cameInstead(s, old)
		}
		switch {
		case !p.was.State.Used():
		case !s.On(to):
			for i := range s.Copies {
				if s.Copies[i].Instead == to { // of a copy that was there before
					s.Copies[i].Instead = ""
				}
			}
			c := Copy{ID: ids.Next(), Node: to}
			if full {
				c.State = StateJoining
				if p.was.Instead != to {
					c.Instead = p.was.Instead
				}
			} else {
				leaveFor(out, p.Range, to)
			}
			s.Copies = slices.Insert(s.Copies, min(p.at, len(s.Copies)), c)
		case full && s.Copies[s.at(to)].State == StateLeaving && p.was.Instead == to:
			s.Copies[s.at(to)].State = StateJoining // it comes back, with what it has
		case !full:
			leaveFor(out, p.Range, to)
			c := &s.Copies[s.at(to)]
			c.State, c.Instead = StateFull, ""
		}
	}
	return slices.DeleteFunc(out, func(s Shard) bool { return len(s.Copies) == 0 }), len(left) > 0
}

// leaveFor has the full copies of a node leave that hold points of a range, for one that is full
// without being filled: it gets what they have.
func leaveFor(shards []Shard, r Range, node string) {
	for i := range shards {
		s := &shards[i]
		if at := s.at(node); at >= 0 && s.Copies[at].State == StateFull && s.Overlaps(r) {
			s.Copies = slices.Clone(s.Copies)
			s.Copies[at].State = StateLeaving
		}
	}
}
