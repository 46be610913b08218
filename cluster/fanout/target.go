package fanout

import (
	"slices"

	"divan/cluster/quorum"
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
	Instead    string // the node whose copy leaves for this one; empty: none
}

// Majority returns how many of some full copies have to answer so that more than half have, whichever
// of them leave: of two of which one comes instead of the other one goes soon, and it is not known here
// which of them others count.
func Majority(copies []Target) int {
	pairs := 0
	for _, t := range copies {
		if t.Instead != "" && slices.ContainsFunc(copies, func(o Target) bool { return o.Node == t.Instead }) {
			pairs++
		}
	}
	return quorum.Majority(len(copies)-pairs) + pairs
}

// Addressee returns which copy a request to the target is meant for.
func (t Target) Addressee() wire.Addressee {
	return wire.Addressee{Copy: t.ID, Generation: t.Generation}
}
