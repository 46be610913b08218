package cluster

import (
	"context"
	"io"

	"divan/cluster/wire"
	"divan/shard"
	"divan/storage/fault"
)

// Guard is the copies of this node with the refusals that protect readers from
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
//
// All methods of shard.Local that are not refused under any circumstances are
// its own.
type Guard struct {
	*shard.Local
	// For the callers that this Guard is for: whether it takes no calls at all,
	// and whether the database of a copy is known to be deleted. nil: never.
	closed func() bool
	buried func(name string) bool
}

// NewGuard returns the guarded copies for the coordinator of this node.
func NewGuard(local *shard.Local) *Guard { return &Guard{Local: local} }

// ForPeers returns the guarded copies for other nodes. closed tells whether
// this node refuses them now: in maintenance mode, or since it was removed.
// buried tells whether the database of a copy was deleted, as far as this node
// knows.
func (g *Guard) ForPeers(closed func() bool, buried func(name string) bool) *Guard {
	return &Guard{Local: g.Local, closed: closed, buried: buried}
}

// CreateMissing makes a copy that should have been there: its database exists,
// and others copies of the range hold what was written so far. It is incomplete
// until repair has filled it; a crash at any point does not change that. A copy
// without others holds all there is from the start. fault.Exists when it is
// there.
func (g *Guard) CreateMissing(ctx context.Context, name string, o shard.CreateOptions, others int) error {
	o.Rebuilding = others > 0
	return g.Local.Create(ctx, name, o)
}

// open refuses the calls of other nodes while this one is closed to them, and
// those for a copy of a database that is gone.
func (g *Guard) open(ctx context.Context, name string) error {
	switch {
	case g.closed != nil && g.closed() && !wire.IsRepair(ctx):
		return errMaintenance()
	case g.buried != nil && g.buried(name):
		return errDropped()
	}
	return nil
}

// reads refuses calls that are answered from what a copy holds.
func (g *Guard) reads(ctx context.Context, name string) error {
	if err := g.open(ctx, name); err != nil {
		return err
	}
	if g.Rebuilding(name) && !wire.IsRepair(ctx) {
		return errIncomplete()
	}
	return nil
}

// errMaintenance is what the client is told when no copy is left to ask
// (api.md section 2).
func errMaintenance() error {
	return fault.New(fault.Unavailable, "Nodes are unable to service this request due to overloading or maintenance mode.")
}

func errIncomplete() error {
	return fault.New(fault.Unavailable, "The copy is being rebuilt from other copies.")
}

// Update is shard.Local's; decisions are refused like reads.
func (g *Guard) Update(ctx context.Context, req shard.UpdateRequest) ([]shard.EditResult, error) {
	check := g.open
	if req.NewEdits || !req.Trusted {
		check = g.reads
	}
	if err := check(ctx, req.Copy); err != nil {
		return nil, err
	}
	return g.Local.Update(ctx, req)
}

// Purge is shard.Local's. There is nothing to decide.
func (g *Guard) Purge(ctx context.Context, name string, items []shard.PurgeItem) ([]shard.PurgeResult, error) {
	if err := g.open(ctx, name); err != nil {
		return nil, err
	}
	return g.Local.Purge(ctx, name, items)
}

// Open is shard.Local's.
func (g *Guard) Open(ctx context.Context, req shard.OpenRequest) (*shard.Doc, error) {
	if err := g.reads(ctx, req.Copy); err != nil {
		return nil, err
	}
	return g.Local.Open(ctx, req)
}

// OpenRevs is shard.Local's.
func (g *Guard) OpenRevs(ctx context.Context, req shard.OpenRevsRequest) ([]shard.RevResult, error) {
	if err := g.reads(ctx, req.Copy); err != nil {
		return nil, err
	}
	return g.Local.OpenRevs(ctx, req)
}

// Missing is shard.Local's.
func (g *Guard) Missing(ctx context.Context, name string, ids []shard.IDRevs) ([]shard.IDMissing, error) {
	if err := g.reads(ctx, name); err != nil {
		return nil, err
	}
	return g.Local.Missing(ctx, name, ids)
}

// DocsByID is shard.Local's.
func (g *Guard) DocsByID(ctx context.Context, name string, ids []string, includeDocs, conflicts bool) ([]shard.Row, error) {
	if err := g.reads(ctx, name); err != nil {
		return nil, err
	}
	return g.Local.DocsByID(ctx, name, ids, includeDocs, conflicts)
}

// LocalGet is shard.Local's.
func (g *Guard) LocalGet(ctx context.Context, name, id string) (*shard.LocalDoc, error) {
	if err := g.reads(ctx, name); err != nil {
		return nil, err
	}
	return g.Local.LocalGet(ctx, name, id)
}

// PutAttachment is shard.Local's.
func (g *Guard) PutAttachment(ctx context.Context, name, id string, key [16]byte) (shard.AttachmentSink, error) {
	if err := g.open(ctx, name); err != nil {
		return nil, err
	}
	return g.Local.PutAttachment(ctx, name, id, key)
}

// ReadAttachment is shard.Local's.
func (g *Guard) ReadAttachment(ctx context.Context, r shard.AttachmentRange) (io.ReadCloser, error) {
	if err := g.reads(ctx, r.Copy); err != nil {
		return nil, err
	}
	return g.Local.ReadAttachment(ctx, r)
}

// DropAttachments is shard.Local's.
func (g *Guard) DropAttachments(ctx context.Context, name, id string, keys [][16]byte) error {
	if err := g.open(ctx, name); err != nil {
		return err
	}
	return g.Local.DropAttachments(ctx, name, id, keys)
}

// Create is shard.Local's: the making of a copy with its database. What
// another node says about the state of the copy does not count.
func (g *Guard) Create(ctx context.Context, name string, o shard.CreateOptions) error {
	if err := g.open(ctx, name); err != nil {
		return err
	}
	o.Rebuilding = false
	return g.Local.Create(ctx, name, o)
}

// Drop is shard.Local's.
func (g *Guard) Drop(ctx context.Context, name string) error {
	if err := g.open(ctx, name); err != nil && !isNoCopy(err) {
		return err
	}
	return g.Local.Drop(ctx, name)
}

// Info is shard.Local's.
func (g *Guard) Info(ctx context.Context, name string) (shard.Info, error) {
	if err := g.reads(ctx, name); err != nil {
		return shard.Info{}, err
	}
	return g.Local.Info(ctx, name)
}

// Partition is shard.Local's.
func (g *Guard) Partition(ctx context.Context, name, partition string) (shard.PartitionInfo, error) {
	if err := g.reads(ctx, name); err != nil {
		return shard.PartitionInfo{}, err
	}
	return g.Local.Partition(ctx, name, partition)
}

// Compact is shard.Local's.
func (g *Guard) Compact(ctx context.Context, name string, l shard.Limits, db string) error {
	if err := g.open(ctx, name); err != nil {
		return err
	}
	return g.Local.Compact(ctx, name, l, db)
}

// AllDocs is shard.Local's.
func (g *Guard) AllDocs(ctx context.Context, req shard.DocsRequest) (*shard.DocStream, error) {
	if err := g.reads(ctx, req.Copy); err != nil {
		return nil, err
	}
	return g.Local.AllDocs(ctx, req)
}

// LocalDocs is shard.Local's.
func (g *Guard) LocalDocs(ctx context.Context, req shard.LocalDocsRequest) (*shard.LocalStream, error) {
	if err := g.reads(ctx, req.Copy); err != nil {
		return nil, err
	}
	return g.Local.LocalDocs(ctx, req)
}

// Changes is shard.Local's.
func (g *Guard) Changes(ctx context.Context, req shard.ChangesRequest) (*shard.ChangeStream, error) {
	if err := g.reads(ctx, req.Copy); err != nil {
		return nil, err
	}
	return g.Local.Changes(ctx, req)
}

// Purges is shard.Local's.
func (g *Guard) Purges(ctx context.Context, name string, since uint64) ([]shard.PurgeInfo, error) {
	if err := g.reads(ctx, name); err != nil {
		return nil, err
	}
	return g.Local.Purges(ctx, name, since)
}

// Position is shard.Local's.
func (g *Guard) Position(ctx context.Context, name string) (uuid [16]byte, seq uint64, err error) {
	if err := g.reads(ctx, name); err != nil {
		return uuid, 0, err
	}
	return g.Local.Position(ctx, name)
}

// WatchOn is shard.Local's; repair does not watch.
func (g *Guard) WatchOn(name string, c chan struct{}) (*shard.Watch, error) {
	switch {
	case g.closed != nil && g.closed():
		return nil, errMaintenance()
	case g.buried != nil && g.buried(name):
		return nil, errDropped()
	case g.Rebuilding(name):
		return nil, errIncomplete()
	}
	return g.Local.WatchOn(name, c)
}
