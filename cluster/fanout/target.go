package fanout

import (
	"divan/cluster/wire"
	"divan/shard/ring"
)

// Target is one copy of one range.
type Target struct {
	ring.Range
	Name       string // where the copy lies, the same on every node that holds one
	Node       string
	ID         uint64 // of the copy in the map of its database; 0: copies have none yet
	Generation uint64 // of that map
	Joining    bool   // it is being filled: it gets all that is written, and answers nothing
}

// Addressee returns which copy a request to the target is meant for.
func (t Target) Addressee() wire.Addressee {
	return wire.Addressee{Copy: t.ID, Generation: t.Generation}
}
