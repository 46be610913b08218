package ring

import "slices"

// MaxNewCopies is how many copies one command may make for one database.
const MaxNewCopies = 1 << 16

// NewCopies gives ids to the copies that one command makes for a database: the index of
// the command, times MaxNewCopies, plus the place of the copy among them. So none is
// ever given again. The zero value gives 0.
type NewCopies struct{ last uint64 }

// IDsOf returns the ids of the command with that index.
func IDsOf(index uint64) *NewCopies { return &NewCopies{index * MaxNewCopies} }

// Next returns the id of one more copy.
func (n *NewCopies) Next() uint64 {
	if n.last == 0 {
		return 0
	}
	n.last++
	return n.last
}

// LastID returns an id that is not below those of the copies made up to a command.
func LastID(index uint64) uint64 { return (index+1)*MaxNewCopies - 1 }

// CommandOf returns the index of the command that made a copy.
func CommandOf(id uint64) uint64 { return id / MaxNewCopies }

// Identify returns shards whose copies have ids, for some whose copies have none;
// otherwise false.
func Identify(shards []Shard, ids *NewCopies) ([]Shard, bool) {
	if len(shards) == 0 || len(shards[0].Copies) == 0 || shards[0].Copies[0].ID != 0 {
		return nil, false
	}
	out := slices.Clone(shards)
	for i := range out {
		out[i].Copies = slices.Clone(out[i].Copies)
		for j := range out[i].Copies {
			out[i].Copies[j].ID = ids.Next()
		}
	}
	return out, true
}

// IdentifyAs gives the copies on a node the ids that their directories tell where those
// are newer than what the shards say. made: copies without any got new ones.
func IdentifyAs(shards []Shard, node string, told func(r Range) uint64, ids *NewCopies) (out []Shard, made bool) {
	out = slices.Clone(shards)
	for i := range out {
		s := &out[i]
		s.Copies = slices.Clone(s.Copies)
		for j := range s.Copies {
			c := &s.Copies[j]
			if id := told(s.Range); c.Node == node && id > c.ID {
				c.ID = id
			}
			if c.ID == 0 {
				c.ID, made = ids.Next(), true
			}
		}
	}
	return out, made
}

// Identified reports whether either all copies have ids, each another one, or none has.
func Identified(shards []Shard) bool {
	seen := make(map[uint64]struct{})
	none := false
	for _, s := range shards {
		for _, c := range s.Copies {
			if _, again := seen[c.ID]; again && c.ID != 0 {
				return false
			}
			seen[c.ID] = struct{}{}
			none = none || c.ID == 0
		}
	}
	return !none || len(seen) == 1
}

// Replace puts a new copy on one node in the place of each copy on another, and reports
// whether there was any. A range that both have copies of loses the old one. New copies
// join, unless copies have no ids yet, or no full one is left: then what the old copy had
// is given up.
func Replace(shards []Shard, old, by string, ids *NewCopies) ([]Shard, bool) {
	var out []Shard
	for i, s := range shards {
		at := s.at(old)
		if at < 0 {
			continue
		}
		if out == nil {
			out = slices.Clone(shards)
		}
		copies := slices.Delete(slices.Clone(s.Copies), at, at+1)
		out[i].Copies = copies
		if s.On(by) {
			if len(out[i].Full()) == 0 {
				copies[out[i].at(by)].State = StateFull
			}
			continue
		}
		c := Copy{ID: ids.Next(), Node: by}
		if c.ID != 0 && len(out[i].Full()) > 0 {
			c.State = StateJoining
		}
		out[i].Copies = slices.Insert(copies, at, c)
	}
	return out, out != nil
}

// Dispensable reports whether a shard loses nothing that was acknowledged when it loses
// its copy on a node: another one is full, and none is still being filled. One that is
// being filled has taken the place of a copy that had what a majority had to have; until it
// is full, each of the others may be the last that has an acknowledged edit.
func (s Shard) Dispensable(node string) bool {
	c, ok := s.CopyOn(node)
	if !ok || c.State == StateJoining {
		return true
	}
	full := s.Full()
	return len(full) > 1 && len(full) == len(s.Copies)
}

// A Change gives a copy another state.
type Change struct {
	Copy uint64 // its id
	To   State
	// Filled are, for a copy that is to be full, the ids of the full copies that have
	// brought it all that they had, each after its node had heard that the copy joins and
	// had ended all writes of before.
	Filled []uint64
}

// Apply makes changes to the states of copies. Those that must not be are passed over: what
// they were decided on may have changed. It reports whether any was made.
//
//   - A full copy may join, because what it had is lost, as long as another one is full. It
//     is another copy from then on: what is found of it later is not what it has then.
//   - A joining copy may join anew, likewise.
//   - A joining copy may be full when more than half of the full copies have filled it. All
//     changes are judged by the state of before, so that copies filled at the same time
//     do not wait for each other.
func Apply(shards []Shard, changes []Change, ids *NewCopies) ([]Shard, bool) {
	out, changed := slices.Clone(shards), false
	for _, ch := range changes {
		for i, s := range shards {
			at := slices.IndexFunc(s.Copies, func(c Copy) bool { return c.ID == ch.Copy })
			if at < 0 {
				continue
			}
			now := out[i]
			if c := now.Copies[at]; c.ID == ch.Copy && may(s, now, c, &ch) {
				if ch.To == StateJoining {
					c.ID = ids.Next()
				}
				c.State = ch.To
				out[i].Copies = slices.Clone(now.Copies)
				out[i].Copies[at] = c
				changed = true
			}
		}
	}
	return out, changed
}

// may reports whether a change may be made to a copy of a shard that was and is now.
func may(was, now Shard, c Copy, ch *Change) bool {
	switch {
	case ch.To == StateJoining && c.State == StateJoining:
		return true
	case ch.To == StateJoining && c.State == StateFull:
		return len(now.Full()) > 1
	case ch.To == StateFull && c.State == StateJoining:
		full := was.Full()
		n := 0
		for _, f := range full {
			if slices.Contains(ch.Filled, f.ID) {
				n++
			}
		}
		return n > len(full)/2
	default:
		return false
	}
}
