package fanout

import (
	"context"
	"slices"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/cluster/wire"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Caller is the node that asks.
type Caller interface {
	// Node returns its name.
	Node() string
	// Replica returns a copy; it is Away when its node cannot be reached.
	Replica(t Target) replica.Copy
	// Spawn runs f on a goroutine of its own that the node waits for when it stops; f has to end
	// soon after its request does. It returns false when the node stops.
	Spawn(f func()) bool
	// Deadline bounds what is asked of copies together.
	Deadline(ctx context.Context) (context.Context, context.CancelFunc)
	// Reads follows how long other nodes take to answer reads.
	Reads() *Latency
}

// Database is the database whose copies are asked.
type Database interface {
	Caller
	// Detach is Spawn for what goes on when the request has ended, for as long as one may take.
	Detach(ctx context.Context, f func(context.Context)) bool
	// NoteRefusal is told each answer's error: a node may say that it does not
	// hold its copy, or that it knows a newer map.
	NoteRefusal(err error)
	// Renewed returns the database by the newer map that a copy was heard to know, and the
	// copies of the range of a target by that; false when nothing newer is known. It waits a little
	// for this node to hear of it.
	Renewed(ctx context.Context, t Target) (Database, []Target, bool)
	// Ended makes of a copy that is not there what it stands for when the node
	// that asks knows that the database is gone: then no other copy is to be read.
	Ended(err error) error
}

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

// NoCopy says that no copy of a range can be asked.
func NoCopy() error {
	return fault.New(fault.Unavailable, "No copy of the shard can answer now.")
}

// NodeDown says that a node cannot be asked.
func NodeDown(node string) error {
	return fault.Newf(fault.NodeDown, "Node %s cannot be reached.", node)
}

// Closed says that nothing more is asked.
func Closed() error { return fault.New(fault.Closed, "The node is shutting down.") }

// TimeoutText is the reason of a request that took longer than it may.
const TimeoutText = "The request could not be processed in a reasonable amount of time."
