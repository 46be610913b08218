package ring

import "slices"

// An Addition is a copy that a database gets.
type Addition struct {
	Range
	Node    string
	Instead string // of the copy of the same range on that node; empty: of others on its own node
	Lost    bool   // the node of Instead is gone for good
}

// Add adds copies, and reports whether they may be: all of them or none.
//
//   - Copies that are made from others of their node come where that has full copies of each point
//     of their ranges, none of which is moved.
//   - A copy that comes instead of a full one on another node joins. Neither node may have another
//     copy of a point of the range.
//   - One that comes instead of one that is lost takes its place at once ([Replace]), as long as nothing
//     is missed without that. All copies of the lost node that overlap are replaced together.
//
// One that is there already stays.
func Add(shards []Shard, copies []Addition, ids *NewCopies) ([]Shard, bool) {
	out := slices.Clone(shards)
	for _, a := range copies {
		if a.Lost {
			var ok bool
			if out, ok = replaceLost(out, &a, ids); !ok {
				return nil, false
			}
			continue
		}
		c := Copy{ID: ids.Next(), Node: a.Node, State: StateCopying, Instead: a.Instead}
		mayCome := mayBeMade
		if a.Instead != "" {
			c.State, mayCome = StateJoining, mayBeMoved
		}
		if a.Begin > a.End || !mayCome(out, &a) {
			return nil, false
		}
		at, there := slices.BinarySearchFunc(out, Shard{Range: a.Range}, byRange)
		switch {
		case there && out[at].On(a.Node):
		case there:
			out[at].Copies = append(slices.Clone(out[at].Copies), c)
		default:
			out = slices.Insert(out, at, Shard{Range: a.Range, Copies: []Copy{c}})
		}
	}
	return out, len(copies) > 0
}

func mayBeMade(shards []Shard, a *Addition) bool {
	for _, s := range shards {
		c, there := s.CopyOn(a.Node)
		switch {
		case !there || !s.Overlaps(a.Range) || s.Range == a.Range:
		case c.State == StateFull && c.Instead != "": // the other one has not left yet
			return false
		case c.State == StateCopying || c.State == StateJoining:
			return false
		}
	}
	return Everywhere(shards, a.Range, func(copies []Copy) bool {
		moves := slices.ContainsFunc(copies, func(o Copy) bool { return o.Instead == a.Node })
		return !moves && slices.ContainsFunc(copies, func(o Copy) bool { return o.Node == a.Node && o.State == StateFull })
	})
}

func mayBeMoved(shards []Shard, a *Addition) bool {
	full := false
	for _, s := range shards {
		if !s.Overlaps(a.Range) {
			continue
		}
		for _, c := range s.Copies {
			switch {
			case s.Range == a.Range && c.Node == a.Instead && c.State == StateFull && c.Instead == "":
				full = true
			case s.Range == a.Range && c.Node == a.Node && c.Instead == a.Instead: // it is there already
			case c.Node == a.Instead, c.Node == a.Node, c.Instead == a.Instead, c.Instead == a.Node:
				return false
			}
		}
	}
	return full
}

// A Change gives a copy another state.
type Change struct {
	Copy uint64 // its id
	To   State
	// Filled are, for a copy that is to be full, the ids of the full copies that have
	// brought it all that they had, each after its node had heard that the copy joins and
	// of the last change of which copies are full, and had ended all writes of before.
	//
	// For one that is to leave because another one has come instead of it they are the full copies
	// of its range that its own node knows, itself among them.
	Filled []uint64
}

// Apply makes changes to the states of copies. Those that must not be are passed over: what
// they were decided on may have changed. It reports whether any was made.
//
//   - A full copy may join, because what it had is lost, as long as other ones are full. It
//     is another copy from then on: files of it that are found later are not its content.
//   - A joining copy may join anew, likewise. A copying one joins as the same
//     copy.
//   - A joining copy may be full when more than half of the full copies have filled it, and none
//     of its node is full. All changes are judged by the state of before, so that copies filled
//     at the same time do not wait for each other.
//   - A full copy may leave for others that become full by the same changes, which are made
//     all or not at all, then. It may leave as well for one that came instead of it, is full, and
//     was so in the last map that its own node knew: so at each time one copy is full that was not,
//     or is not any more, and any two majorities of one map after the other have a copy in common.
//   - A copy that is not full may go. Of a joining copy the proposer knows that it has the place of
//     no other copy: until it is full, the others have to be as many as before. A copy that has
//     come instead of one that is there no more may not go, nor while others join: it counted for
//     edits that they lack.
func Apply(shards []Shard, changes []Change, ids *NewCopies) ([]Shard, bool) {
	leaves := func(ch Change) bool { return ch.To == StateLeaving }
	leaving := slices.ContainsFunc(changes, leaves)
	if leaving { // they make space for those that come
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
	if leaving && !mayLeave(shards, out, changes) {
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
			cameInstead(&out[i], c.Node)
			out[i].Copies = slices.Delete(out[i].Copies, at, at+1)
			return true
		}
		if ch.To == StateJoining && c.State != StateCopying {
			c.ID = ids.Next()
		}
		if c.State = ch.To; c.State == StateFull && hasPlace(&out[i], c) {
			c.Instead = ""
		}
		out[i].Copies[at] = c
		return true
	}
	return false
}

// cameInstead notes that the copy of a node is gone. One that joins instead of it keeps that it has come
// in its place (hasPlace).
func cameInstead(s *Shard, node string) {
	for i := range s.Copies {
		if c := &s.Copies[i]; c.Instead == node && c.State == StateFull {
			c.Instead = ""
		}
	}
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
		return c.State != StateFull && (c.Instead == "" || !hasPlace(s, c) && !joinsBeside(now, s.Range, c))
	default:
		return false
	}
}

// hasPlace reports whether a copy of a shard came instead of one that is there no more: it has the
// place of that now.
func hasPlace(s *Shard, c Copy) bool {
	old, there := s.CopyOn(c.Instead)
	return c.Instead != "" && (!there || !old.State.Used())
}

// joinsBeside reports whether another copy that holds a point of a range joins.
func joinsBeside(shards []Shard, r Range, one Copy) bool {
	return slices.ContainsFunc(shards, func(s Shard) bool {
		return s.Overlaps(r) && slices.ContainsFunc(s.Copies, func(c Copy) bool { return c.State == StateJoining && c.ID != one.ID })
	})
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
// is to be by some changes, may.
func mayLeave(was, is []Shard, changes []Change) bool {
	before := func(c Copy, state State) bool {
		return slices.ContainsFunc(was, func(s Shard) bool {
			return slices.ContainsFunc(s.Copies, func(o Copy) bool { return o.ID == c.ID && o.State == state })
		})
	}
	fresh := func(c Copy) bool { return c.State == StateFull && before(c, StateJoining) }
	for _, s := range is {
		for _, c := range s.Copies {
			if c.State != StateLeaving || !before(c, StateFull) {
				continue
			}
			if at := slices.IndexFunc(changes, func(ch Change) bool { return ch.Copy == c.ID }); len(changes[at].Filled) > 0 {
				if !moved(was, s.Range, c.Node, changes[at].Filled) {
					return false
				}
				continue
			}
			if !Everywhere(is, s.Range, func(copies []Copy) bool { return slices.ContainsFunc(copies, fresh) }) {
				return false
			}
		}
	}
	return true
}

// moved reports whether another full copy came instead of that of a node, which knows that these are
// the full copies of its range.
func moved(shards []Shard, r Range, node string, known []uint64) bool {
	full, came := 0, false
	for _, s := range shards {
		if !s.Overlaps(r) {
			continue
		}
		for _, c := range s.Copies {
			if c.State != StateFull {
				continue
			}
			if full++; !slices.Contains(known, c.ID) {
				return false
			}
			came = came || s.Range == r && c.Instead == node
		}
	}
	return came && full == len(known)
}

// Moved returns the change by which the full copy of a node leaves because another one came instead of
// it and is full; false when none did.
func Moved(shards []Shard, s *Shard, node string) (Change, bool) {
	c, here := s.CopyOn(node)
	if _, came := s.Heir(node); !here || !came {
		return Change{}, false
	}
	ch := Change{Copy: c.ID, To: StateLeaving}
	for _, o := range shards {
		if !o.Overlaps(s.Range) {
			continue
		}
		for _, f := range o.Full() {
			ch.Filled = append(ch.Filled, f.ID)
		}
	}
	return ch, c.State == StateFull
}

// Left returns the changes by which the leaving copy of a node goes. When it is lost, that which came
// instead of it may lack what it had, and joins anew.
func Left(s *Shard, node string, lost bool) []Change {
	c, _ := s.CopyOn(node)
	var out []Change
	if heir, ok := s.Heir(node); lost && ok {
		out = append(out, Change{Copy: heir.ID, To: StateJoining})
	}
	return append(out, Change{Copy: c.ID, To: StateGone})
}

// Heir returns the full copy that came instead of that of a node; false when none did.
func (s Shard) Heir(node string) (Copy, bool) {
	at := slices.IndexFunc(s.Copies, func(c Copy) bool { return c.Instead == node && c.State == StateFull })
	if at < 0 {
		return Copy{}, false
	}
	return s.Copies[at], true
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
