package fanout

import (
	"context"
	"time"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/storage/fault"
)

// AnyCopy is a question that any of some copies can answer: it is hedged, and
// the first usable answer is the answer.
type AnyCopy[T any] struct {
	Database Database
	Copies   []ring.Replica
	Ask      func(ctx context.Context, rep replica.Copy, t ring.Replica) (T, error)
	Absent   int // copies that have to say fault.NotFound; see quorum.NewFirst

	// For answers that outlive the question, as streams do: what lets go of one
	// that comes too late, how long all may take (0: as long as it likes), and
	// when the next copy is asked (0: when the one asked is slower than usual).
	Drop            func(T)
	Limit, Patience time.Duration
}

// Reply is the answer of one copy.
type Reply[T any] struct {
	Got  T
	From ring.Replica
	Stop context.CancelFunc // ends the context that the answer lives in

	Database Database // by the map that the copies were asked by, and these
	Copies   []ring.Replica
}

// First returns the answer, otherwise the error that says most. Without drop it
// takes [fabric] request_timeout at most. When a copy refuses because it knows a newer
// map, and no other one answers, the copies of that are asked.
func (q AnyCopy[T]) First(ctx context.Context) (Reply[T], error) {
	for {
		if len(q.Copies) == 0 {
			return Reply[T]{}, NoCopy()
		}
		got, err := q.once(ctx)
		if err == nil {
			got.Database = q.Database
			return got, nil
		}
		if quorum.Usable(err) && q.Absent < 2 {
			return got, err
		}
		db, copies, ok := q.Database.Renewed(ctx, q.Copies[0])
		if !ok {
			return got, err
		}
		q.Database, q.Copies = db, copies
	}
}

// once asks the copies of one map.
func (q AnyCopy[T]) once(ctx context.Context) (Reply[T], error) {
	taken := quorum.NewFirst(q.Absent)
	if q.Copies[0].Node == q.Database.Node() {
		got, err := q.Ask(ctx, q.Database.Replica(q.Copies[0]), q.Copies[0])
		q.Database.NoteRefusal(err)
		if taken.Take(err) == quorum.Enough || len(q.Copies) == 1 {
			return Reply[T]{Got: got, From: q.Copies[0], Stop: nothing, Copies: q.Copies}, err
		}
		q.Copies = q.Copies[1:]
	}
	return q.hedge(ctx, taken)
}

func nothing() {}

// hedge is first for copies of other nodes.
func (q AnyCopy[T]) hedge(ctx context.Context, taken quorum.First) (Reply[T], error) {
	d := &firstAnswer[T]{First: taken, from: -1}
	r := HedgedRequest[ring.Replica, T]{
		Database: q.Database, Copies: q.Copies, Decider: d, Call: q.Ask,
		Drop: q.Drop, Limit: q.Limit, Patience: q.Patience,
	}
	if r.Patience == 0 {
		reads := q.Database.Reads()
		r.Latency, r.Patience = reads, reads.Patience(ReadPatience)
	}
	own, cancel := ctx, context.CancelFunc(nothing)
	if q.Drop == nil {
		own, cancel = q.Database.Deadline(ctx)
	}
	defer cancel()
	late := r.Run(own, 1)
	stop := r.end(d.from)
	switch {
	case d.from >= 0:
		return Reply[T]{Got: d.got, From: q.Copies[d.from], Stop: stop, Copies: q.Copies}, nil
	case late == nil:
		return Reply[T]{}, d.Err()
	case ctx.Err() != nil:
		return Reply[T]{}, ctx.Err()
	default:
		return Reply[T]{}, quorum.Telling(d.Err(), fault.New(fault.Timeout, TimeoutText))
	}
}

// firstAnswer is the decider of an AnyCopy.
type firstAnswer[T any] struct {
	quorum.First
	got  T
	from int // the copy whose answer it is; -1: none
}

func (d *firstAnswer[T]) Request(_ int, t ring.Replica) (ring.Replica, bool) { return t, true }

func (d *firstAnswer[T]) Take(a Answer[T], _ int) quorum.Step {
	if a.Err == nil {
		d.got, d.from = a.Got, a.At
	}
	return d.First.Take(a.Err)
}
