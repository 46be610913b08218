package placer

import (
	"fmt"

	"divan/shard/ring"
)

// Result is a plan.
type Result struct {
	Moves  []Move // in the order in which they are best done
	Left   []Left // what stays as it should not be
	Totals Totals
	Nodes  []NodeBytes // by the index of the node
}

// Move is a copy that is made on one node and then removed from another.
type Move struct {
	Range    ring.Range
	Database int32
	Shard    int32 // its index in the cluster
	From, To int32 // nodes; From is None for a copy that was nowhere
	Reason   Reason
	Bytes    int64
}

// Reason is why a copy moves. The smaller one is the more urgent.
type Reason uint8

// The reasons.
const (
	Lost      Reason = iota // its node is lost, or it was nowhere
	Together                // its node has another copy of the same point
	Draining                // its node is drained
	Placement               // the placement rule wants it in another zone
	Zones                   // its zone has more copies of the range than others, which have space
	Balance                 // its node is too full, or another one too empty
	reasons
)

// String returns the reason in a word.
func (r Reason) String() string {
	names := [...]string{"lost", "together", "draining", "placement", "zones", "balance"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reason(%d)", r)
}

// Totals are sums over a plan, in bytes.
type Totals struct {
	Bytes    int64          // that move
	ByReason [reasons]int64 // of these, by the reason
	// MustMove is a lower bound of what any plan moves that does the same repairs and
	// brings each node within the tolerance.
	MustMove int64
}

// NodeBytes are the bytes on a node.
type NodeBytes struct {
	Before, After int64
	Goal          int64 // of a node that is lost or drained: 0
}

// Left is something that stays as it should not be, and why.
type Left struct {
	Why    Why
	Reason Reason // what would be a reason to move; Balance when it is about a node
	Shard  int32  // index in the cluster; None when it is about a node
	Node   int32  // that has the copy, or that is meant
	Bytes  int64  // of the copy; of a node: how far it is beyond the tolerance, negative when too empty
}

// Why is the cause that keeps a copy or a node as it is.
type Why uint8

// The causes.
const (
	// NoSource: no copy of the range is left that it could be made from.
	NoSource Why = iota
	// TooFewNodes: each node that takes copies has one of the range.
	TooFewNodes
	// ZoneFull: each zone that the placement rule names has its copies, or
	// no node for more.
	ZoneFull
	// Pinned: something else works on the copy.
	Pinned
	// NextPlan: other moves of this plan are in the way; a plan made when they are done has it.
	NextPlan
	// TooCoarse: no copy may be moved that is small enough.
	TooCoarse
	// ZoneShare: the node cannot have the part that its weight says, since the zones bind
	// copies. It is within the tolerance of the goal that is possible.
	ZoneShare
	// NodeAway: the node that has a place for it does not answer.
	NodeAway
	// NoMajority: too few copies are left to be sure that they have all. No plan says so: who knows of it pins them.
	NoMajority
)

// String returns the cause as a sentence.
func (w Why) String() string {
	names := [...]string{
		"no copy is left to make it from", "each node has a copy of the range", "no zone of the placement rule has a place for it",
		"something else works on the copy", "other moves have to be done first", "no copy that may be moved is small enough",
		"the zones do not allow the share of its weight", "the node that has a place for it cannot be reached",
		"too few copies are left to be sure that they have all that was acknowledged",
	}
	if int(w) < len(names) {
		return names[w]
	}
	return fmt.Sprintf("Why(%d)", w)
}
