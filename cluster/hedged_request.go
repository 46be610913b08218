package cluster

import (
	"context"
	"time"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/storage/fault"
)

// hedgedRequest asks the copies of a range in their order: some at first, and
// the next one when the decider wants it, and also when nobody has answered for
// patience. Every answer goes to the decider, which says whether it is enough.
//
// The copy of this node is asked on the caller's goroutine, after those of other
// nodes that are asked at the same time. As long as only that one is asked there
// is no goroutine, no channel and no timer.
//
// Contexts: all copies share the caller's, which ends it when it has what it
// wants. Where an answer lives in its context, as a stream does (drop is set),
// every copy of another node has one of its own: end ends them but for the one
// whose answer is kept.
type hedgedRequest[R, T any] struct {
	db       *DB
	copies   []target
	decider  decider[R, T]
	call     func(ctx context.Context, rep replica.Copies, req R) (T, error) // asks one copy
	latency  *latency                                                        // learns how long answers take; nil: nobody does
	patience time.Duration                                                   // until the next copy is asked
	limit    time.Duration                                                   // for all of it; 0: that of the context
	drop     func(T)                                                         // lets go of an answer that comes too late; nil: nothing to let go of

	next    int // the copy that is asked next
	pending int // copies that have not answered
	inbox   chan answer[T]
	stops   []context.CancelFunc // by copy; with drop only
}

// decider is what a hedged request is about. It belongs to one goroutine.
type decider[R, T any] interface {
	// request returns what a copy is to be asked now; ok is false for nothing.
	request(at int, t target) (req R, ok bool)
	// take counts an answer, while that many copies have not answered.
	take(a answer[T], pending int) quorum.Step
}

// answer is what one copy said.
type answer[T any] struct {
	at        int // in hedgedRequest.copies
	got       T
	err       error
	unreached bool // it was not asked: its node cannot be reached
}

// run asks that many copies at first and returns when the decider has enough, or
// all copies have answered. The error says that the time was over before.
func (r *hedgedRequest[R, T]) run(ctx context.Context, first int) error {
	if r.more(ctx, first) || r.pending == 0 {
		return nil
	}
	var over <-chan time.Time
	if r.limit > 0 {
		limit := time.NewTimer(r.limit)
		defer limit.Stop()
		over = limit.C
	}
	hedge := time.NewTimer(r.patience)
	defer hedge.Stop()
	for r.pending > 0 {
		select {
		case a := <-r.inbox:
			r.pending--
			switch r.count(ctx, a) {
			case quorum.Enough:
				return nil
			case quorum.Another:
			default:
				continue
			}
		case <-hedge.C:
		case <-over:
			return fault.New(fault.Timeout, timeoutText)
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.more(ctx, 1) {
			return nil
		}
		hedge.Reset(r.patience)
	}
	return nil
}

// more asks that many further copies that can be reached, and reports whether
// the decider has enough.
func (r *hedgedRequest[R, T]) more(ctx context.Context, n int) (enough bool) {
	for n > 0 && r.next < len(r.copies) {
		own := -1
		for ; n > 0 && r.next < len(r.copies); r.next++ {
			if r.copies[r.next].node == r.db.c.node {
				own, n = r.next, n-1
				continue
			}
			before := r.pending
			if r.ask(ctx, r.next) == quorum.Enough {
				return true
			}
			n -= r.pending - before // none when it cannot be reached
		}
		if own < 0 {
			return false
		}
		switch r.ask(ctx, own) {
		case quorum.Enough:
			return true
		case quorum.Another:
			n = 1
		default:
			return false
		}
	}
	return false
}

// ask asks one copy, and says how to go on if that is known already.
func (r *hedgedRequest[R, T]) ask(ctx context.Context, at int) quorum.Step {
	t := r.copies[at]
	rep := r.db.c.replica(t.node)
	if rep == nil {
		return r.count(ctx, answer[T]{at: at, err: errNodeDown(t.node), unreached: true})
	}
	req, ok := r.decider.request(at, t)
	if !ok {
		return quorum.Wait
	}
	if t.node == r.db.c.node {
		got, err := r.call(ctx, rep, req)
		return r.count(ctx, answer[T]{at: at, got: got, err: err})
	}
	if r.inbox == nil {
		r.inbox = make(chan answer[T], len(r.copies))
	}
	own := r.contextOf(ctx, at)
	ok = r.db.c.spawn(func() {
		begun := time.Now()
		got, err := r.call(own, rep, req)
		if err == nil && r.latency != nil {
			r.latency.note(time.Since(begun))
		}
		r.inbox <- answer[T]{at: at, got: got, err: err}
	})
	if !ok {
		return r.count(ctx, answer[T]{at: at, err: errClosed()})
	}
	r.pending++
	return quorum.Wait
}

// contextOf returns the context that a copy of another node is asked in.
func (r *hedgedRequest[R, T]) contextOf(ctx context.Context, at int) context.Context {
	if r.drop == nil {
		return ctx
	}
	if r.stops == nil {
		r.stops = make([]context.CancelFunc, len(r.copies))
	}
	ctx, r.stops[at] = context.WithCancel(ctx)
	return ctx
}

// count gives an answer to the decider.
func (r *hedgedRequest[R, T]) count(ctx context.Context, a answer[T]) quorum.Step {
	r.db.noteNoCopy(a.err)
	step := r.decider.take(a, r.pending)
	if step == quorum.Again {
		return r.ask(ctx, a.at)
	}
	return step
}

// end ends the copies that have not answered, and lets go of what they may still
// answer. It returns what ends the context of the copy whose answer is kept;
// below 0: of none.
func (r *hedgedRequest[R, T]) end(kept int) (stop context.CancelFunc) {
	stop = nothing
	for at, cancel := range r.stops {
		switch {
		case cancel == nil:
		case at == kept:
			stop = cancel
		default:
			cancel()
		}
	}
	if r.drop == nil || r.pending == 0 {
		return stop
	}
	clear := func() {
		for range r.pending {
			if a := <-r.inbox; a.err == nil {
				r.drop(a.got)
			}
		}
	}
	if !r.db.c.spawn(clear) { // closing: they end at once
		clear()
	}
	return stop
}
