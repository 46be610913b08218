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
