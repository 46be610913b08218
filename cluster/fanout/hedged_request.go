package fanout

import (
	"context"
	"time"

	"divan/cluster/quorum"
	"divan/cluster/replica"
	"divan/shard/ring"
	"divan/storage/fault"
)

// HedgedRequest asks the copies of a range in their order: some at first, and the next one when the
// decider wants it, and also when no copy has answered for patience. Every answer goes to the
// decider, which says whether it is enough.
//
// The copy of this node is asked on the caller's goroutine, after those of other
// nodes that are asked at the same time. As long as only that one is asked there
// is no goroutine, no channel and no timer.
//
// What is Detached goes to all copies, whether or not the decider has enough meanwhile: that
// of this node is asked like the others, and they go on when the request has ended.
//
// Contexts: all copies share the caller's, which ends it when it has what it
// wants. Where an answer lives in its context, as a stream does (drop is set),
// every copy of another node has one of its own: end ends them but for the one
// whose answer is kept.
type HedgedRequest[R, T any] struct {
	Database Database
	Copies   []ring.Replica
	Decider  Decider[R, T]
	Call     func(ctx context.Context, rep replica.Copy, req R) (T, error) // asks one copy
	Latency  *Latency                                                      // learns how long answers take; nil: not measured
	Patience time.Duration                                                 // until the next copy is asked
	Limit    time.Duration                                                 // for all of it; 0: that of the context
	Drop     func(T)                                                       // lets go of an answer that comes too late; nil: nothing to let go of
	Detached bool                                                          // see above

	next    int  // the copy that is asked next
	pending int  // copies that have not answered
	own     bool // that of this node is among them
	inbox   chan Answer[T]
	stops   []context.CancelFunc // by copy; with drop only
}

// Decider chooses the requests of a hedged request and counts its answers. It belongs to one
// goroutine.
type Decider[R, T any] interface {
	// Request returns what a copy is to be asked now, should it be reached; ok is false for nothing.
	Request(at int, t ring.Replica) (req R, ok bool)
	// Take counts an answer, while that many copies have not answered.
	Take(a Answer[T], pending int) quorum.Step
}

// Answer is the answer of one copy.
type Answer[T any] struct {
	At        int // index in HedgedRequest.Copies
	Got       T
	Err       error
	Unreached bool // it was not asked: its node cannot be reached
}

// Run asks that many copies at first and returns when the decider has enough, or
// all copies have answered. The error says that the time was over before.
func (r *HedgedRequest[R, T]) Run(ctx context.Context, first int) error {
	if r.Start(ctx, first) {
		return nil
	}
	return r.Wait(ctx)
}

// Wait is Run after the first copies were asked.
func (r *HedgedRequest[R, T]) Wait(ctx context.Context) error {
	if r.pending == 0 {
		return nil
	}
	var over, slow <-chan time.Time
	if r.Limit > 0 {
		limit := time.NewTimer(r.Limit)
		defer limit.Stop()
		over = limit.C
	}
	var hedge *time.Timer
	if r.Left() {
		hedge = time.NewTimer(r.Patience)
		defer hedge.Stop()
		slow = hedge.C
	}
	for r.pending > 0 {
		select {
		case a := <-r.inbox:
			r.pending--
			r.own = r.own && (r.Copies[a.At].State == ring.StateJoining || r.Copies[a.At].Node != r.Database.Node())
			switch r.count(ctx, a) {
			case quorum.Enough:
				return nil
			case quorum.Another:
			default:
				continue
			}
		case <-slow:
		case <-over:
			return fault.New(fault.Timeout, TimeoutText)
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.Left() {
			if r.Start(ctx, 1) {
				return nil
			}
			hedge.Reset(r.Patience)
		}
	}
	return nil
}

// OwnPending reports whether the copy of this node was asked and has not answered.
func (r *HedgedRequest[R, T]) OwnPending() bool { return r.own }

// Left reports whether there is a copy that has not been asked.
func (r *HedgedRequest[R, T]) Left() bool { return r.next < len(r.Copies) }

// Start asks that many further copies that can be reached, and reports whether
// the decider has enough.
func (r *HedgedRequest[R, T]) Start(ctx context.Context, n int) (enough bool) {
	for n > 0 && r.next < len(r.Copies) {
		own := -1
		for ; n > 0 && r.next < len(r.Copies); r.next++ {
			if r.here(r.Copies[r.next]) {
				own, n = r.next, n-1
				continue
			}
			before := r.pending
			if r.ask(ctx, r.next) == quorum.Enough && !r.Detached {
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

// here reports whether a copy is asked on the caller's goroutine.
func (r *HedgedRequest[R, T]) here(t ring.Replica) bool {
	return !r.Detached && t.Node == r.Database.Node()
}

// ask asks one copy, and says how to go on if that is known already.
func (r *HedgedRequest[R, T]) ask(ctx context.Context, at int) quorum.Step {
	t := r.Copies[at]
	req, ok := r.Decider.Request(at, t)
	if !ok {
		return quorum.Wait
	}
	rep := r.Database.Replica(t)
	if rep.Away() {
		return r.count(ctx, Answer[T]{At: at, Err: NodeDown(t.Node), Unreached: true})
	}
	if r.here(t) {
		got, err := r.Call(ctx, rep, req)
		return r.count(ctx, Answer[T]{At: at, Got: got, Err: err})
	}
	if r.inbox == nil {
		r.inbox = make(chan Answer[T], len(r.Copies)) // space for all, so that no straggler waits for a reader
	}
	if r.Detached {
		ok = r.Database.Detach(ctx, func(ctx context.Context) { r.call(ctx, at, rep, req) })
	} else {
		own := r.contextOf(ctx, at)
		ok = r.Database.Spawn(func() { r.call(own, at, rep, req) })
	}
	if !ok {
		return r.count(ctx, Answer[T]{At: at, Err: Closed()})
	}
	r.pending++
	r.own = r.own || t.Node == r.Database.Node()
	return quorum.Wait
}

// call puts a question to a copy on a goroutine of its own.
func (r *HedgedRequest[R, T]) call(ctx context.Context, at int, rep replica.Copy, req R) {
	begun := time.Now()
	got, err := r.Call(ctx, rep, req)
	if err == nil && r.Latency != nil {
		r.Latency.Note(time.Since(begun))
	}
	r.inbox <- Answer[T]{At: at, Got: got, Err: err}
}

// contextOf returns the context that a copy of another node is asked in.
func (r *HedgedRequest[R, T]) contextOf(ctx context.Context, at int) context.Context {
	if r.Drop == nil {
		return ctx
	}
	if r.stops == nil {
		r.stops = make([]context.CancelFunc, len(r.Copies))
	}
	ctx, r.stops[at] = context.WithCancel(ctx)
	return ctx
}

// count gives an answer to the decider.
func (r *HedgedRequest[R, T]) count(ctx context.Context, a Answer[T]) quorum.Step {
	r.Database.NoteRefusal(a.Err)
	step := r.Decider.Take(a, r.pending)
	if step == quorum.Again {
		return r.ask(ctx, a.At)
	}
	return step
}

// end ends the copies that have not answered, and lets go of what they may still
// answer. It returns what ends the context of the copy whose answer is kept;
// below 0: of none.
func (r *HedgedRequest[R, T]) end(kept int) (stop context.CancelFunc) {
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
	if r.Drop == nil || r.pending == 0 {
		return stop
	}
	clear := func() {
		for range r.pending {
			if a := <-r.inbox; a.Err == nil {
				r.Drop(a.Got)
			}
		}
	}
	if !r.Database.Spawn(clear) { // closing: they end at once
		clear()
	}
	return stop
}
