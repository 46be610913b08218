package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/cluster/routing"
	"divan/shard/ring"
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
func (a *Asking) Replica(t ring.Replica) replica.Copy { return a.replica(t) }

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
		return (*replicaSet)(a).ended(err)
	}
	return err
}

// Explain implements attachment.Database.
func (a *Asking) Explain(ctx context.Context, err error) error {
	return (*replicaSet)(a).explain(ctx, err)
}

// ask puts a question to one copy of a range that any of them can answer: to
// that of this node if it has one, else in the order of the map, and to the
// next one when a copy gives no usable answer or is slow. The error is
// explained.
func ask[T any](ctx context.Context, d *replicaSet, copies []ring.Replica, question func(context.Context, replica.Copy, ring.Replica) (T, error)) (T, error) {
	got, err := fanout.AnyCopy[T]{Database: d.Asking(), Copies: copies, Ask: question}.First(ctx)
	return got.Got, d.explain(ctx, err)
}

// askSome is ask for what a copy may not have although another one has it:
// fault.NotFound counts only when r copies say so, or all that answer; r below
// 1 means the majority. What was acknowledged by the majority is found, and a
// copy that has not dropped yet what the others have dropped is no oracle.
func askSome[T any](ctx context.Context, d *replicaSet, copies []ring.Replica, r int, question func(context.Context, replica.Copy, ring.Replica) (T, error)) (T, error) {
	if r < 1 {
		r = fanout.Majority(copies)
	}
	got, err := fanout.AnyCopy[T]{Database: d.Asking(), Copies: copies, Ask: question, Absent: r}.First(ctx)
	return got.Got, d.explain(ctx, err)
}

// askOf is ask, or with an r that is not 1 askSome, about a document of a route. When a shard was
// split meanwhile, the copies of that part are asked to which the document belongs by the newer map.
func askOf[T any](ctx context.Context, d *replicaSet, s *routing.Route, q about, question func(context.Context, replica.Copy, ring.Replica) (T, error)) (got T, err error) {
	d.byNewestMapOf(ctx, s, q.id, func(d *DB, s *routing.Route) (done bool) {
		if q.r == 1 {
			got, err = ask(ctx, d.replicaSet, s.Near, question)
		} else {
			got, err = askSome(ctx, d.replicaSet, s.Near, q.r, question)
		}
		return !fault.Is(err, fault.Unavailable)
	})
	return got, err
}

// about is a document, and how many copies have to say that something is not there.
type about struct {
	id string
	r  int
}

func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }

// pick returns the values at some places.
func pick[T any](all []T, places []int) []T {
	out := make([]T, len(places))
	for k, at := range places {
		out[k] = all[at]
	}
	return out
}
