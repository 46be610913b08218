package ring

import "slices"

// MaxNewCopies is how many copies one command may make for one database.
const MaxNewCopies = 1 << 16

// NewCopies gives ids to the copies that one command makes for a database: the index of
// the command, times MaxNewCopies, plus the place of the copy among them. So none is
// ever given again.
type NewCopies struct{ last uint64 }

// IDsOf returns the ids of the command with that index.
func IDsOf(index uint64) *NewCopies { return &NewCopies{index * MaxNewCopies} }

// Next returns the id of one more copy.
func (n *NewCopies) Next() uint64 {
	n.last++
	return n.last
}

// CommandOf returns the index of the command that made a copy.
func CommandOf(id uint64) uint64 { return id / MaxNewCopies }

// Identify returns the shards of a new database with ids for their copies.
func Identify(shards []Shard, ids *NewCopies) []Shard {
	out := slices.Clone(shards)
	for i := range out {
		out[i].Copies = slices.Clone(out[i].Copies)
		for j := range out[i].Copies {
			out[i].Copies[j].ID = ids.Next()
		}
	}
	return out
}

// IdentifyAs gives the copies on a node the ids that their directories tell where those
// are newer than what the shards say, and new ones to copies without any.
func IdentifyAs(shards []Shard, node string, told func(r Range) uint64, ids *NewCopies) []Shard {
	out := slices.Clone(shards)
	for i := range out {
		s := &out[i]
		s.Copies = slices.Clone(s.Copies)
		for j := range s.Copies {
			c := &s.Copies[j]
			if id := told(s.Range); c.Node == node && id > c.ID {
				c.ID = id
			}
			if c.ID == 0 {
				c.ID = ids.Next()
			}
		}
	}
	return out
}

// Identified reports whether all copies have ids, each another one.
func Identified(shards []Shard) bool {
	seen := map[uint64]struct{}{0: {}}
	for _, s := range shards {
		for _, c := range s.Copies {
			if _, again := seen[c.ID]; again {
				return false
			}
			seen[c.ID] = struct{}{}
		}
	}
	return true
}
