package ring

import (
	"cmp"
	"slices"
)

// An Addition is a copy that a database gets, for other ones on its node.
type Addition struct {
	Range
	Node string
}

// Add adds copies that are made, and reports whether they may be: all of them or none. They come on
// nodes that have full copies of each point of their ranges. One that is there already stays.
func Add(shards []Shard, copies []Addition, ids *NewCopies) ([]Shard, bool) {
	out := slices.Clone(shards)
	for _, a := range copies {
		c := Copy{ID: ids.Next(), Node: a.Node, State: StateCopying}
		if a.Begin > a.End || !Everywhere(shards, a.Range, func(copies []Copy) bool {
			return slices.ContainsFunc(copies, func(o Copy) bool { return o.Node == a.Node && o.State == StateFull })
		}) {
			return nil, false
		}
		at, there := slices.BinarySearchFunc(out, Shard{Range: a.Range}, byRange)
		switch {
		case c.ID == 0:
			return nil, false
		case there && out[at].On(a.Node):
		case there:
			out[at].Copies = append(slices.Clone(out[at].Copies), c)
		default:
			out = slices.Insert(out, at, Shard{Range: a.Range, Copies: []Copy{c}})
		}
	}
	return out, len(copies) > 0
}

// Replace puts a new copy on one node in the place of each copy on another, and reports
// whether there was any. A range that both have copies of loses the old one. New copies
// join, unless copies have no ids yet, or a point of the range has no full one left: then what
// the old copy had is given up. Copies that coordinators do not know have no successor.
func Replace(shards []Shard, old, by string, ids *NewCopies) ([]Shard, bool) {
	type place struct {
		Range
		at  int
		was State
	}
	var left []place
	out := slices.Clone(shards)
	for i, s := range shards {
		at := s.at(old)
		if at < 0 {
			continue
		}
		out[i].Copies = slices.Delete(slices.Clone(s.Copies), at, at+1)
		left = append(left, place{s.Range, at, s.Copies[at].State})
	}
	slices.SortStableFunc(left, func(a, b place) int { return cmp.Compare(a.was, b.was) }) // full ones first
	for _, p := range left {
		i := slices.IndexFunc(out, func(s Shard) bool { return s.Range == p.Range })
		s := &out[i]
		full := Everywhere(out, p.Range, anyFull)
		switch {
		case !p.was.Used():
		case !s.On(by):
			c := Copy{ID: ids.Next(), Node: by}
			if c.ID != 0 && full {
				c.State = StateJoining
			} else {
				leaveFor(out, p.Range, by)
			}
			s.Copies = slices.Insert(s.Copies, min(p.at, len(s.Copies)), c)
		case !full:
			leaveFor(out, p.Range, by)
			s.Copies[s.at(by)].State = StateFull
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

// A Change gives a copy another state.
type Change struct {
	Copy uint64 // its id
	To   State
	// Filled are, for a copy that is to be full, the ids of the full copies that have
	// brought it all that they had, each after its node had heard that the copy joins and
	// of the last change of which copies are full, and had ended all writes of before.
	Filled []uint64
}

// Apply makes changes to the states of copies. Those that must not be are passed over: what
// they were decided on may have changed. It reports whether any was made.
//
//   - A full copy may join, because what it had is lost, as long as other ones are full. It
//     is another copy from then on: what is found of it later is not what it has then.
//   - A joining copy may join anew, likewise. A copying one joins as what it is.
//   - A joining copy may be full when more than half of the full copies have filled it, and none
//     of its node is full. All changes are judged by the state of before, so that copies filled
//     at the same time do not wait for each other.
//   - A full copy may leave for others that become full by the same changes, which are made
//     all or not at all, then.
//   - A copy that is not full may go. Of one that joins its proposer knows that it has nobody's
//     place: until it is full, the others have to be as many as before.
func Apply(shards []Shard, changes []Change, ids *NewCopies) ([]Shard, bool) {
	leaves := func(ch Change) bool { return ch.To == StateLeaving }
	leaving := slices.ContainsFunc(changes, leaves)
	if leaving { // they make room for those that come
		changes = append(slices.DeleteFunc(slices.Clone(changes), func(ch Change) bool { return !leaves(ch) }),
			slices.DeleteFunc(slices.Clone(changes), leaves)...)
	}
	out, changed := slices.Clone(shards), false
	for i := range changes {
		if apply(shards, out, &changes[i], ids) {
			changed = true
		} else if leaving {
			return nil, false
		}
	}
	if leaving && !mayLeave(shards, out) {
		return nil, false
	}
	return slices.DeleteFunc(out, func(s Shard) bool { return len(s.Copies) == 0 }), changed
}

// apply makes a change to out, which has the ranges of was, if it may be.
func apply(was, out []Shard, ch *Change, ids *NewCopies) bool {
	for i := range out {
		at := slices.IndexFunc(out[i].Copies, func(c Copy) bool { return c.ID == ch.Copy })
		if at < 0 {
			continue
		}
		c := out[i].Copies[at]
		if !may(was, out, &out[i], c, ch) {
			return false
		}
		out[i].Copies = slices.Clone(out[i].Copies)
		if ch.To == StateGone {
			out[i].Copies = slices.Delete(out[i].Copies, at, at+1)
			return true
		}
		if ch.To == StateJoining && c.State != StateCopying {
			c.ID = ids.Next()
		}
		c.State = ch.To
		out[i].Copies[at] = c
		return true
	}
	return false
}

// may reports whether a change may be made to a copy of a shard, of a map that was and is now.
// Whether a copy may leave is judged when all changes are made.
func may(was, now []Shard, s *Shard, c Copy, ch *Change) bool {
	switch {
	case ch.To == StateJoining && (c.State == StateJoining || c.State == StateCopying):
		return true
	case ch.To == StateJoining && c.State == StateFull:
		return FullBeside(now, s.Range, c)
	case ch.To == StateFull && c.State == StateJoining:
		return Filled(was, s.Range, ch.Filled) && !fullOn(now, s.Range, c.Node)
	case ch.To == StateLeaving && c.State == StateFull:
		return true
	case ch.To == StateGone:
		return c.State != StateFull
	default:
		return false
	}
}

// fullOn reports whether a node has a full copy of a point of a range. No node has two of one:
// they would count for two where a node is lost.
func fullOn(shards []Shard, r Range, node string) bool {
	return slices.ContainsFunc(shards, func(s Shard) bool {
		c, ok := s.CopyOn(node)
		return ok && c.State == StateFull && s.Overlaps(r)
	})
}

// mayLeave reports whether the copies that leave in a map that was, and are leaving in what it
// is to be, may.
func mayLeave(was, is []Shard) bool {
	before := func(c Copy, state State) bool {
		c.State = state
		return slices.ContainsFunc(was, func(s Shard) bool { return slices.Contains(s.Copies, c) })
	}
	fresh := func(c Copy) bool { return c.State == StateFull && before(c, StateJoining) }
	for _, s := range is {
		for _, c := range s.Copies {
			if c.State != StateLeaving || !before(c, StateFull) {
				continue
			}
			if !Everywhere(is, s.Range, func(copies []Copy) bool { return slices.ContainsFunc(copies, fresh) }) {
				return false
			}
		}
	}
	return true
}

// FullChanged reports whether other copies are full in a map than before.
func FullChanged(was, is []Shard) bool {
	ids := func(shards []Shard) []uint64 {
		var out []uint64
		for _, s := range shards {
			for _, c := range s.Copies {
				if c.State == StateFull {
					out = append(out, c.ID)
				}
			}
		}
		slices.Sort(out)
		return out
	}
	return !slices.Equal(ids(was), ids(is))
}
