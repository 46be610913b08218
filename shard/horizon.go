package shard

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// horizon separates what is durable from what is only visible: a reader of the
// store sees a write as soon as it is applied, before it is on disk.
//
//	H1. Nothing above the horizon is shown to anybody: whoever read a sequence
//	    from the store waits for it here first. Otherwise a crash could take
//	    back what a reader has acted upon, and give its sequence to another
//	    write.
//	H2. The horizon only rises, in the order of the rounds, each when its batch
//	    is durable; it rises before the answers to that round go out, so that
//	    whoever got an answer reads its own write without waiting.
//	H3. Before the writer applies the first round after a calm it sets the
//	    horizon to the sequence the store has then; in a calm everything
//	    applied is durable. So a reader that read something first and looked at
//	    the horizon afterwards cannot miss a round that it saw.
//
// Local documents have no sequence, and neither has the log of purges. Rounds
// that touch them are counted, and their readers wait for the last such round.
type horizon struct {
	seq      atomic.Uint64 // durable sequence; calmSeq: all of them
	loose    atomic.Uint64 // last applied round with changes outside the sequence
	done     atomic.Uint64 // last durable round
	waitLock sync.Mutex
	moved    chan struct{} // closed when the horizon moves; nil: nobody waits
	err      error         // why it will never move again
}

// calmSeq as the horizon means that nothing is on its way to the disk.
const calmSeq = math.MaxUint64

func newHorizon() *horizon {
	h := &horizon{}
	h.seq.Store(calmSeq)
	return h
}

// begin announces a round before it is applied: seq is the last sequence
// before it, loose tells that it changes something without a sequence.
func (h *horizon) begin(round, seq uint64, loose bool) {
	h.seq.CompareAndSwap(calmSeq, seq)
	if loose {
		h.loose.Store(round)
	}
}

// publish tells that the round is durable, and everything up to seq with it.
func (h *horizon) publish(round, seq uint64) {
	h.waitLock.Lock()
	defer h.waitLock.Unlock()
	h.seq.Store(seq)
	h.done.Store(round)
	h.wakeLocked()
}

// fail ends the waiting for everything above the horizon.
func (h *horizon) fail(err error) {
	h.waitLock.Lock()
	defer h.waitLock.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.wakeLocked()
}

func (h *horizon) wakeLocked() {
	if h.moved != nil {
		close(h.moved)
		h.moved = nil
	}
}

// waitSeq returns when everything up to seq is durable.
func (h *horizon) waitSeq(ctx context.Context, seq uint64) error {
	if seq <= h.seq.Load() {
		return nil
	}
	return h.wait(ctx, func() bool { return seq <= h.seq.Load() })
}

// waitLoose returns when every change without a sequence that has been applied
// until now is durable.
func (h *horizon) waitLoose(ctx context.Context) error {
	round := h.loose.Load()
	if round <= h.done.Load() {
		return nil
	}
	return h.wait(ctx, func() bool { return round <= h.done.Load() })
}

func (h *horizon) wait(ctx context.Context, reached func() bool) error {
	for {
		h.waitLock.Lock()
		if reached() {
			h.waitLock.Unlock()
			return nil
		}
		if err := h.err; err != nil {
			h.waitLock.Unlock()
			return err
		}
		if h.moved == nil {
			h.moved = make(chan struct{})
		}
		moved := h.moved
		h.waitLock.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
