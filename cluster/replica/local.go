package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/index"
	"divan/shard/ring"
	"divan/shard/search"
	"divan/shard/view"
)

// Held is the copies of this node and what follows them.
type Held struct {
	Shards   *shard.Local
	Indexes  *index.Manager  // nil: indexes are not asked for
	Views    *view.Views     // likewise
	Searches *search.Indexes // likewise
	// Place returns what the map of this node has here under the name of a copy: ID is 0 when it has
	// none, Generation when there is no map. nil: requests are compared with the directories only.
	Place func(name string) ring.Replica
	// Heard waits until this node has heard of the map of that generation, which the node
	// that asks has. nil: nothing is waited for.
	Heard func(ctx context.Context, generation uint64) error
	// Make makes a copy that the map says should be here and that is not there yet. nil:
	// nothing is made.
	Make func(ctx context.Context, name string) error
	// Dropped is called with the name of a copy that is about to be dropped because its database
	// was deleted; nil: not called.
	Dropped func(name string)
}

// Local is the copies of this node with the refusals that protect readers from
// copies that must not answer:
//
//   - A copy that joins lacks what the other copies have until repair has brought it. It
//     takes revisions that were decided elsewhere, purges, contents, and the calls of
//     repair; it refuses reads and decisions with fault.Unavailable.
//   - A call that was made by an older map than this node has is refused with
//     fault.StaleMap, if the copy had another state in that, or the answer is counted.
//   - A copy of a database that this node knows to be deleted is not there for
//     other nodes, though it may wait to be dropped: one that has not heard of
//     it must not have its edits taken and acknowledged.
//   - In maintenance mode no copy does anything for other nodes but repair
//     (semantics.md section 8.7), nor on a node that is no member any more.
type Local struct {
	held Held
	// For the callers that this Local is for: whether it takes no calls at all,
	// and whether the database of a copy is known to be deleted. nil: never.
	closed  func() bool
	deleted func(name string) bool
}

// NewLocal returns the copies of this node for its own coordinator.
func NewLocal(held Held) *Local { return &Local{held: held} }

// ForPeers returns the copies for other nodes. closed tells whether this node
// refuses them now: in maintenance mode, or since it was removed. deleted tells
// whether the database of a copy was deleted, as far as this node knows.
func (l *Local) ForPeers(closed func() bool, deleted func(name string) bool) *Local {
	return &Local{held: l.held, closed: closed, deleted: deleted}
}

// Do implements Copies.
func (l *Local) Do(ctx context.Context, c Call) error { return c.On(ctx, l) }

// Operations returns what a server does with the copies.
func (l *Local) Operations() wire.Operations {
	o := wire.NewOperations()
	for _, op := range all() {
		op.serve(&o, l)
	}
	return o
}

// Has reports whether a copy is on the disk. It is not opened for that.
func (l *Local) Has(name string) bool { return l.held.Shards.Copies.Has(name) }

// DiskFull is fault.InsufficientStorage while the disk of this node is full.
func (l *Local) DiskFull() error { return l.held.Shards.Copies.DiskFull() }

// Names lists the copies, sorted.
func (l *Local) Names() ([]string, error) { return l.held.Shards.Copies.Names() }
