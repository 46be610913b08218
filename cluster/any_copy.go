package cluster

import (
	"context"
	"time"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// anyCopy is a question that any of some copies can answer: it is hedged, and
// the first usable answer is the answer.
type anyCopy[T any] struct {
	db     *DB
	copies []target
	ask    func(ctx context.Context, rep replica.Copies, t target) (T, error)
	absent int // copies that have to say fault.NotFound; see quorum.NewFirst

	// For answers that outlive the question, as streams do: what lets go of one
	// that comes too late, how long all may take (0: as long as it likes), and
	// when the next copy is asked (0: when the one asked is slower than usual).
	drop            func(T)
	limit, patience time.Duration
}

// reply is the answer of one copy.
type reply[T any] struct {
	got  T
	from target
	stop context.CancelFunc // ends the context that the answer lives in
}

// first returns the answer, otherwise the error that says most. Without drop it
// takes [fabric] request_timeout at most.
func (q anyCopy[T]) first(ctx context.Context) (reply[T], error) {
	if len(q.copies) == 0 {
		return reply[T]{}, errNoCopy()
	}
	taken := quorum.NewFirst(q.absent)
	if q.copies[0].node == q.db.c.node {
		got, err := q.ask(ctx, q.db.c.local, q.copies[0])
		if taken.Take(err) == quorum.Enough || len(q.copies) == 1 {
			return reply[T]{got: got, from: q.copies[0], stop: nothing}, err
		}
		q.copies = q.copies[1:]
	}
	return q.hedge(ctx, taken)
}

func nothing() {}

// hedge is first for copies of other nodes.
func (q anyCopy[T]) hedge(ctx context.Context, taken quorum.First) (reply[T], error) {
	d := &firstAnswer[T]{First: taken, from: -1}
	r := hedgedRequest[target, T]{
		db: q.db, copies: q.copies, decider: d, call: q.ask,
		drop: q.drop, limit: q.limit, patience: q.patience,
	}
	if r.patience == 0 {
		r.latency, r.patience = &q.db.c.reads, q.db.c.reads.patience(readPatience)
	}
	own, cancel := ctx, context.CancelFunc(nothing)
	if q.drop == nil {
		own, cancel = q.db.c.deadline(ctx)
	}
	defer cancel()
	late := r.run(own, 1)
	stop := r.end(d.from)
	switch {
	case d.from >= 0:
		return reply[T]{got: d.got, from: q.copies[d.from], stop: stop}, nil
	case late == nil:
		return reply[T]{}, d.Err()
	case ctx.Err() != nil:
		return reply[T]{}, ctx.Err()
	default:
		return reply[T]{}, quorum.Telling(d.Err(), fault.New(fault.Timeout, timeoutText))
	}
}

// firstAnswer is the decider of an anyCopy.
type firstAnswer[T any] struct {
	quorum.First
	got  T
	from int // the copy whose answer it is; -1: none
}

func (d *firstAnswer[T]) request(_ int, t target) (target, bool) { return t, true }

func (d *firstAnswer[T]) take(a answer[T], _ int) quorum.Step {
	if a.err == nil {
		d.got, d.from = a.got, a.at
	}
	return d.Take(a.err)
}

// ask puts a question to one copy of a segment that any of them can answer: to
// that of this node if it has one, else in the order of the map, and to the
// next one when a copy gives no usable answer or is slow. The error is
// explained.
func ask[T any](ctx context.Context, d *DB, copies []target, question func(context.Context, replica.Copies, target) (T, error)) (T, error) {
	got, err := anyCopy[T]{db: d, copies: copies, ask: question}.first(ctx)
	return got.got, d.explain(ctx, err)
}

// askSome is ask for what a copy may not have although another one has it:
// fault.NotFound counts only when r copies say so, or all that answer; r below
// 1 means the majority. What was acknowledged by the majority is found, and a
// copy that has not dropped yet what the others have dropped is no oracle.
func askSome[T any](ctx context.Context, d *DB, copies []target, r int, question func(context.Context, replica.Copies, target) (T, error)) (T, error) {
	if r < 1 {
		r = quorum.Majority(len(copies))
	}
	got, err := anyCopy[T]{db: d, copies: copies, ask: question, absent: r}.first(ctx)
	return got.got, d.explain(ctx, err)
}

func isNotFound(err error) bool { return fault.Is(err, fault.NotFound) }
