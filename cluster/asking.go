package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// asking is a database as what asks its copies sees it: [fanout] and
// [attachment].
type asking DB

func (d *DB) asking() *asking { return (*asking)(d) }

// Node implements fanout.Caller.
func (a *asking) Node() string { return a.c.node }

// Replica implements fanout.Caller.
func (a *asking) Replica(node string) replica.Copies { return a.c.replica(node) }

// Spawn implements fanout.Caller.
func (a *asking) Spawn(f func()) bool { return a.c.spawn(f) }

// Deadline implements fanout.Caller.
func (a *asking) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return a.c.deadline(ctx)
}

// Reads implements fanout.Caller.
func (a *asking) Reads() *fanout.Latency { return &a.c.reads }

// NoteNoCopy implements fanout.Database.
func (a *asking) NoteNoCopy(err error) { (*DB)(a).noteNoCopy(err) }

// Ended implements fanout.Database.
func (a *asking) Ended(err error) error {
	if fault.Is(err, fault.NoCopy) && a.c.gone(a.meta) {
		return (*DB)(a).phrase(err)
	}
	return err
}

// Explain implements attachment.Database.
func (a *asking) Explain(ctx context.Context, err error) error { return (*DB)(a).explain(ctx, err) }

// WhenBorn implements attachment.Database.
func (a *asking) WhenBorn(ctx context.Context, part func() error) error {
	return (*DB)(a).whenBorn(ctx, part)
}
