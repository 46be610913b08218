package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// Asking is a database as what asks its copies sees it: [fanout] and
// [attachment].
type Asking replicaSet

// Asking returns the database as what asks its copies sees it.
func (d *replicaSet) Asking() *Asking { return (*Asking)(d) }

// Node implements fanout.Caller.
func (a *Asking) Node() string { return a.node }

// Replica implements fanout.Caller.
func (a *Asking) Replica(t fanout.Target) replica.Copy { return a.replica(t) }

// Spawn implements fanout.Caller.
func (a *Asking) Spawn(f func()) bool { return a.spawn(f) }

// Detach implements fanout.Database.
func (a *Asking) Detach(ctx context.Context, f func(context.Context)) bool {
	return a.detach(ctx, f)
}

// Deadline implements fanout.Caller.
func (a *Asking) Deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return a.deadline(ctx)
}

// Reads implements fanout.Caller.
func (a *Asking) Reads() *fanout.Latency { return &a.latency.reads }

// NoteRefusal implements fanout.Database.
func (a *Asking) NoteRefusal(err error) { (*replicaSet)(a).noteRefusal(err) }

// Ended implements fanout.Database.
func (a *Asking) Ended(err error) error {
	if fault.Is(err, fault.NoCopy) && (*replicaSet)(a).gone() {
		return (*replicaSet)(a).phrase(err)
	}
	return err
}

// Explain implements attachment.Database.
func (a *Asking) Explain(ctx context.Context, err error) error {
	return (*replicaSet)(a).explain(ctx, err)
}
