// Package writefence tells when all writes have ended that a node let in before.
package writefence

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"divan/storage/pause"
)

// Fence tells when all writes have ended that had begun before. A write begins before
// it looks at which map it was made by, so that after Drain none is under way that was
// let in by a map older than the node had when Drain was called. Nothing waits for Drain.
//
// Writes count in one of two epochs; Drain begins the other one and waits for the first
// to be empty.
type Fence struct {
	epoch    atomic.Uint32
	writing  [2]atomic.Int64
	draining sync.Mutex
	begun    atomic.Uint64 // Drains that have begun to wait
	drained  atomic.Uint64 // the last of them that has come to its end
}

// Begin counts a write; its epoch is given back to End.
func (f *Fence) Begin() (epoch uint32) {
	for {
		e := f.epoch.Load()
		f.writing[e&1].Add(1)
		if f.epoch.Load() == e {
			return e
		}
		f.writing[e&1].Add(-1) // Drain may have found it empty already
	}
}

// End ends a write.
func (f *Fence) End(epoch uint32) { f.writing[epoch&1].Add(-1) }

// drainPoll is the first pause before Drain looks again; the pauses double up to lastPoll.
const (
	drainPoll = time.Millisecond
	lastPoll  = 64 * time.Millisecond
)

// Drain returns when all writes have ended that had begun before it was called, or with
// the error of ctx.
func (f *Fence) Drain(ctx context.Context) error {
	// One that begins to wait after now does for this one as well.
	before, turn := f.begun.Load(), false
	err := poll(ctx, func() bool {
		if f.drained.Load() > before {
			return true
		}
		turn = f.draining.TryLock()
		return turn
	})
	if err != nil || !turn {
		return err
	}
	defer f.draining.Unlock()
	e := f.epoch.Load()
	ended := func(e uint32) error {
		return poll(ctx, func() bool { return f.writing[e&1].Load() == 0 })
	}
	if err := ended(e + 1); err != nil { // of a Drain whose context ended
		return err
	}
	number := f.begun.Add(1)
	f.epoch.Store(e + 1)
	if err := ended(e); err != nil {
		return err
	}
	f.drained.Store(number)
	return nil
}

// poll returns when ok is true, or with the error of ctx.
func poll(ctx context.Context, ok func() bool) error {
	for wait := drainPoll; !ok(); wait = min(2*wait, lastPoll) {
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}
