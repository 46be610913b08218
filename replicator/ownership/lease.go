package ownership

import (
	"context"
	"time"

	"go.uber.org/zap"

	"divan/storage/pause"
)

const (
	// confirmEvery is how often a node asks the group whether what it knows of the
	// slots is true. In a group of one that costs nothing.
	confirmEvery = time.Second

	// askAgain is the pause of a check that the group did not answer.
	askAgain = 200 * time.Millisecond

	// leaseFor is how long a node relies on an answer, counted from when it asked:
	// longer than an election takes.
	leaseFor = 5 * time.Second

	// vacantFor is how long a slot is vacant before the leader gives it to another node. It is
	// longer than leaseFor (see the package comment).
	vacantFor = 6 * time.Second
)

// leaseEnds returns when the last confirmation of the group expires. The time is of the monotonic
// clock, which cannot be set.
func (t *Table) leaseEnds() time.Time {
	asked := t.asked.Load()
	if asked == 0 {
		return t.base
	}
	return t.base.Add(time.Duration(asked) + leaseFor)
}

func (t *Table) leaseHolds() bool { return time.Now().Before(t.leaseEnds()) }

// confirm brings this node up to what the group has agreed on, and renews the
// lease. The lease begins before the question leaves: the answer may take long.
func (t *Table) confirm(ctx context.Context) error {
	asked := int64(max(time.Since(t.base), 1))
	if err := t.meta.CatchUp(ctx); err != nil {
		return err
	}
	for old := t.asked.Load(); old < asked && !t.asked.CompareAndSwap(old, asked); old = t.asked.Load() {
	}
	return nil
}

// keepLease renews the lease until ctx ends, and tells when it ends or begins
// again.
func (t *Table) keepLease(ctx context.Context) {
	held := false
	note := func(err error) {
		now := t.leaseHolds()
		if held && !now && ctx.Err() == nil {
			t.log.Warn("this node may run no replications until it hears of the others again", zap.Error(err))
		}
		if held != now {
			held = now
			t.tell()
		}
	}
	for ctx.Err() == nil {
		err := t.confirmInTime(ctx)
		note(err)
		wait := confirmEvery
		if held {
			wait = min(wait, time.Until(t.leaseEnds()))
		}
		_ = pause.For(ctx, wait) // the loop looks at ctx
		note(err)                // before it asks again, which takes a while
	}
}

// confirmInTime is confirm that returns when the lease ends, if there is one.
func (t *Table) confirmInTime(ctx context.Context) error {
	end := time.Now().Add(leaseFor)
	if t.leaseHolds() {
		end = t.leaseEnds()
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return t.confirm(ctx)
}
