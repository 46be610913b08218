package cluster

import (
	"context"

	"divan/cluster/fanout"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// ask puts a question to one copy of a range that any of them can answer: to
// that of this node if it has one, else in the order of the map, and to the
// next one when a copy gives no usable answer or is slow. The error is
// explained.
func ask[T any](ctx context.Context, d *replicaSet, copies []fanout.Target, question func(context.Context, replica.Copy, fanout.Target) (T, error)) (T, error) {
	got, err := fanout.AnyCopy[T]{Database: d.Asking(), Copies: copies, Ask: question}.First(ctx)
	return got.Got, d.explain(ctx, err)
}

// askSome is ask for what a copy may not have although another one has it:
// fault.NotFound counts only when r copies say so, or all that answer; r below
// 1 means the majority. What was acknowledged by the majority is found, and a
// copy that has not dropped yet what the others have dropped is no oracle.
func askSome[T any](ctx context.Context, d *replicaSet, copies []fanout.Target, r int, question func(context.Context, replica.Copy, fanout.Target) (T, error)) (T, error) {
	if r < 1 {
		r = fanout.Majority(copies)
	}
	got, err := fanout.AnyCopy[T]{Database: d.Asking(), Copies: copies, Ask: question, Absent: r}.First(ctx)
	return got.Got, d.explain(ctx, err)
}

// askOf is ask, or with an r that is not 1 askSome, about a document of a route. When a shard was
// split meanwhile, the copies of that part are asked to which the document belongs by the newer map.
func askOf[T any](ctx context.Context, d *replicaSet, s *route, q about, question func(context.Context, replica.Copy, fanout.Target) (T, error)) (got T, err error) {
	d.byNewestMapOf(ctx, s, q.id, func(d *DB, s *route) (done bool) {
		if q.r == 1 {
			got, err = ask(ctx, d.replicaSet, s.near, question)
		} else {
			got, err = askSome(ctx, d.replicaSet, s.near, q.r, question)
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
