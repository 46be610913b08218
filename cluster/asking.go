package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// Asking is a database as what asks its copies sees it: [fanout] and
// [attachment].
type Asking DB

// Asking returns the database as what asks its copies sees it.
func (d *DB) Asking() *Asking { return (*Asking)(d) }

// Node implements fanout.Caller.
func (a *Asking) Node() string { return a.c.node }

// Replica implements fanout.Caller.
func (a *Asking) Replica(t fanout.Target) replica.Copy { return a.c.replica(t) }

// Spawn implements fanout.Caller.
func (a *Asking) Spawn(f func()) bool { return a.c.spawn(f) }

// Detach implements fanout.Database.
func (a *Asking) Detach(ctx context.Context, f func(context.Context)) bool {
	return a.c.detach(ctx, f)
}

// Deadline implements fanout.Caller.
func (a *Asking) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return a.c.deadline(ctx)
}

// Reads implements fanout.Caller.
func (a *Asking) Reads() *fanout.Latency { return &a.c.latency.reads }

// NoteRefusal implements fanout.Database.
func (a *Asking) NoteRefusal(err error) { (*DB)(a).noteRefusal(err) }

// Ended implements fanout.Database.
func (a *Asking) Ended(err error) error {
	if fault.Is(err, fault.NoCopy) && a.c.gone(a.meta) {
		return (*DB)(a).phrase(err)
	}
	return err
}

// Explain implements attachment.Database.
func (a *Asking) Explain(ctx context.Context, err error) error { return (*DB)(a).explain(ctx, err) }
