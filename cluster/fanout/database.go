package fanout

import (
	"context"

	"divan/cluster/replica"
)

// Caller is the node that asks.
type Caller interface {
	// Node returns its name.
	Node() string
	// Replica returns a copy; it is Away when its node cannot be reached.
	Replica(t Target) replica.Copy
	// Spawn runs f on a goroutine of its own that somebody waits for; f has to
	// end soon after its request does. It returns false when the node stops.
	Spawn(f func()) bool
	// Deadline bounds what is asked of copies together.
	Deadline(ctx context.Context) (context.Context, context.CancelFunc)
	// Reads follows how long other nodes take to answer reads.
	Reads() *Latency
}

// Database is what copies are asked about.
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
