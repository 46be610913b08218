package cluster

import (
	"context"
	"time"

	"divan/cluster/quorum"
	"divan/storage/fault"
)

// race asks copies that could all answer, one after the other in their order:
// the next one when a copy gives no usable answer, and also when it has been
// silent for longer than patience. The first usable answer is the answer.
//
// Contexts: every copy that is asked has a context of its own. Those of the
// others end when the race does, and what they still answer is given to drop;
// that of the winner is the caller's to end, because a stream lives in it.
type race[T any] struct {
	db       *DB
	copies   []target
	ask      func(ctx context.Context, rep replica, t target) (T, error)
	drop     func(T)          // lets go of an answer that is not wanted; nil: nothing to let go of
	goOn     func(error) bool // an answer after which another copy is asked all the same; nil: none
	limit    time.Duration    // for all of it; 0: none
	patience time.Duration

	next    int // the copy that is asked next
	pending int // copies that have not answered
	inbox   chan lap[T]
	stops   []context.CancelFunc // by copy
	failure error
}

// lap is what one copy answered.
type lap[T any] struct {
	at  int
	got T
	err error
}

// won is the answer of a race.
type won[T any] struct {
	got  T
	from target
	stop context.CancelFunc // ends what the answer lives in; never nil
}

// run returns the first usable answer; otherwise the error that says most.
func (r *race[T]) run(ctx context.Context) (won[T], error) {
	if len(r.copies) > 0 && r.copies[0].node == r.db.c.node {
		got, err := r.ask(ctx, r.db.c.local, r.copies[0])
		if err == nil || r.final(err) || len(r.copies) == 1 {
			return won[T]{got: got, from: r.copies[0], stop: func() {}}, err
		}
		r.failure, r.next = err, 1
	}
	r.inbox = make(chan lap[T], len(r.copies))
	r.stops = make([]context.CancelFunc, len(r.copies))
	if !r.launch(ctx) {
		return won[T]{}, r.lost()
	}
	return r.follow(ctx)
}

// follow waits for answers.
func (r *race[T]) follow(ctx context.Context) (won[T], error) {
	var over <-chan time.Time
	if r.limit > 0 {
		limit := time.NewTimer(r.limit)
		defer limit.Stop()
		over = limit.C
	}
	hedge := time.NewTimer(r.patience)
	defer hedge.Stop()
	for {
		select {
		case a := <-r.inbox:
			r.pending--
			if a.err == nil || r.final(a.err) {
				r.giveUp(a.at)
				return won[T]{got: a.got, from: r.copies[a.at], stop: r.stops[a.at]}, a.err
			}
			r.stops[a.at]()
			r.db.noteLack(a.err)
			r.failure = quorum.Telling(r.failure, a.err)
			if !r.launch(ctx) && r.pending == 0 {
				return won[T]{}, r.lost()
			}
			hedge.Reset(r.patience)
		case <-hedge.C:
			if r.launch(ctx) {
				hedge.Reset(r.patience)
			}
		case <-over:
			r.giveUp(-1)
			return won[T]{}, quorum.Telling(r.failure, fault.New(fault.Timeout, timeoutText))
		case <-ctx.Done():
			r.giveUp(-1)
			return won[T]{}, ctx.Err()
		}
	}
}

// launch asks the next copy that can be reached; false when there is none.
func (r *race[T]) launch(ctx context.Context) bool {
	for r.next < len(r.copies) {
		at := r.next
		r.next++
		rep := r.db.c.replica(r.copies[at].node)
		if rep == nil {
			r.failure = quorum.Telling(r.failure, errNodeDown(r.copies[at].node))
			continue
		}
		own, stop := context.WithCancel(ctx)
		r.stops[at] = stop
		ok := r.db.c.spawn(func() {
			begun := time.Now()
			got, err := r.ask(own, rep, r.copies[at])
			if err == nil {
				r.db.c.reads.note(time.Since(begun))
			}
			r.inbox <- lap[T]{at: at, got: got, err: err}
		})
		if !ok {
			stop()
			r.failure = errClosed()
			return false
		}
		r.pending++
		return true
	}
	return false
}

// giveUp ends the copies that have not answered, all but the winner, and lets
// go of what they may still answer.
func (r *race[T]) giveUp(winner int) {
	for at, stop := range r.stops {
		if stop != nil && at != winner {
			stop()
		}
	}
	if r.drop == nil || r.pending == 0 {
		return
	}
	left := r.pending
	clear := func() {
		for range left {
			if a := <-r.inbox; a.err == nil {
				r.drop(a.got)
			}
		}
	}
	if !r.db.c.spawn(clear) { // closing: they end at once
		clear()
	}
}

// final reports whether an error is the answer.
func (r *race[T]) final(err error) bool {
	return quorum.Usable(err) && (r.goOn == nil || !r.goOn(err))
}

func (r *race[T]) lost() error {
	if r.failure == nil {
		return errNoCopy()
	}
	return r.failure
}
