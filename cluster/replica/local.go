package replica

import (
	"context"

	"divan/cluster/wire"
	"divan/shard"
	"divan/shard/view"
)

// Held is the copies of this node and what follows them.
type Held struct {
	Shards *shard.Local
	Views  *view.Views // nil: views are not asked for
	// Unnamed tells whether a directory that does not say which copy it is may be the
	// one with that id: programs that knew no ids have made it. nil: never.
	Unnamed func(name string, id uint64) bool
	// Make makes a copy that a request is meant for and that is not there, if the map
	// says that it should be: a node may be asked before it has heard of a database. nil:
	// nothing is made.
	Make func(ctx context.Context, name string, to wire.Addressee) error
	// Dropped is told the name of a copy that is about to be dropped because its database
	// was deleted; nil: nobody is told.
	Dropped func(name string)
}

// Local is the copies of this node with the refusals that protect readers from
// copies that must not answer:
//
//   - A copy that was made because it was missing (CreateMissing) lacks what the
//     other copies have until repair has brought it. It takes revisions that
//     were decided elsewhere, purges, contents, and the calls of repair; it
//     refuses reads and decisions with fault.Unavailable, so that another copy
//     is asked.
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

// CreateMissing makes a copy that should have been there: its database exists,
// and other copies of the range hold what was written so far. It is incomplete
// until repair has filled it; a crash at any point does not change that. A copy
// without others holds all there is from the start; one that was here once and
// is lost is not made: storage.ErrLost. fault.Exists when it is there.
func (l *Local) CreateMissing(ctx context.Context, name string, o shard.CreateOptions, others int) error {
	o.Rebuilding, o.Sole = others > 0, others == 0
	return l.held.Shards.Create(ctx, name, o)
}

// Has reports whether a copy is on the disk. It is not opened for that.
func (l *Local) Has(name string) bool { return l.held.Shards.Has(name) }

// DiskFull is fault.InsufficientStorage while the disk of this node is full.
func (l *Local) DiskFull() error { return l.held.Shards.DiskFull() }

// Names lists the copies, sorted.
func (l *Local) Names() ([]string, error) { return l.held.Shards.Names() }

// Rebuilding reports whether a copy is marked as incomplete.
func (l *Local) Rebuilding(name string) bool { return l.held.Shards.Rebuilding(name) }
