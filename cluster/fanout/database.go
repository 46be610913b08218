package fanout

import (
	"context"
	"slices"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/storage/fault"
)

// Caller is the node that asks.
type Caller interface {
	// Node returns its name.
	Node() string
	// Replica returns a copy; it is Away when its node cannot be reached.
	Replica(t ring.Replica) replica.Copy
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
	Renewed(ctx context.Context, t ring.Replica) (Database, []ring.Replica, bool)
	// Ended makes of a copy that is not there what it stands for when the node
	// that asks knows that the database is gone: then no other copy is to be read.
	Ended(err error) error
}

// Majority returns how many of some full copies have to answer so that more than half have, whichever
// of them leave: of two of which one comes instead of the other one goes soon, and it is not known here
// which of them others count.
func Majority(copies []ring.Replica) int {
	pairs := 0
	for _, t := range copies {
		if t.Instead != "" && slices.ContainsFunc(copies, func(o ring.Replica) bool { return o.Node == t.Instead }) {
			pairs++
		}
	}
	return quorum.Majority(len(copies)-pairs) + pairs
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
