package shard

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// durableSequence separates what is durable from what is only visible: a reader
// of the store sees a write as soon as it is applied, before it is on disk.
//
//	D1. Nothing above the durable sequence is shown to a client: a reader that
//	    got a sequence from the store waits for it here first. Otherwise a crash
//	    could take back what a reader has acted upon, and give its sequence to
//	    another write.
//	D2. The durable sequence only rises, in the order of the group commits, each
//	    when its batch is durable; it rises before the answers to that group go
//	    out, so that a client that got an answer reads its own write without
//	    waiting.
//	D3. At rest everything applied is durable. Before the writer applies the
//	    first group after that it sets the durable sequence to the sequence the
//	    store has then. So a reader that read something first and looked at the
//	    durable sequence afterwards cannot miss a group that it saw.
//
// Local documents have no sequence, and neither has the purge log. Groups
// that touch them are counted, and their readers wait for the last such group.
type durableSequence struct {
	seq          atomic.Uint64 // durable sequence; allDurable: all of them
	unsequenced  atomic.Uint64 // last applied group with changes outside the sequence
	durableGroup atomic.Uint64 // last durable group
	waitLock     sync.Mutex
	advanced     chan struct{} // closed when the durable sequence moves; nil: no reader waits
	err          error         // why it will never move again
}

// allDurable as the durable sequence means that nothing is on its way to the disk.
const allDurable = math.MaxUint64

func newDurableSequence() *durableSequence {
	d := &durableSequence{}
	d.seq.Store(allDurable)
	return d
}

// begin announces a group before it is applied: seq is the last sequence
// before it, unsequenced tells that it changes something without a sequence.
func (d *durableSequence) begin(group, seq uint64, unsequenced bool) {
	d.seq.CompareAndSwap(allDurable, seq)
	if unsequenced {
		d.unsequenced.Store(group)
	}
}

// publish tells that the group is durable, and everything up to seq with it.
func (d *durableSequence) publish(group, seq uint64) {
	d.waitLock.Lock()
	defer d.waitLock.Unlock()
	d.seq.Store(seq)
	d.durableGroup.Store(group)
	d.notifyLocked()
}

// fail ends the waiting for everything above the durable sequence.
func (d *durableSequence) fail(err error) {
	d.waitLock.Lock()
	defer d.waitLock.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.notifyLocked()
}

func (d *durableSequence) notifyLocked() {
	if d.advanced != nil {
		close(d.advanced)
		d.advanced = nil
	}
}

// waitSeq returns when everything up to seq is durable.
func (d *durableSequence) waitSeq(ctx context.Context, seq uint64) error {
	if seq <= d.seq.Load() {
		return nil
	}
	return d.wait(ctx, func() bool { return seq <= d.seq.Load() })
}

// waitUnsequenced returns when every change without a sequence that has been applied
// until now is durable.
func (d *durableSequence) waitUnsequenced(ctx context.Context) error {
	group := d.unsequenced.Load()
	if group <= d.durableGroup.Load() {
		return nil
	}
	return d.wait(ctx, func() bool { return group <= d.durableGroup.Load() })
}

func (d *durableSequence) wait(ctx context.Context, reached func() bool) error {
	for {
		d.waitLock.Lock()
		if reached() {
			d.waitLock.Unlock()
			return nil
		}
		if err := d.err; err != nil {
			d.waitLock.Unlock()
			return err
		}
		if d.advanced == nil {
			d.advanced = make(chan struct{})
		}
		moved := d.advanced
		d.waitLock.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
