package script

import (
	"context"
	"errors"
	"time"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

const (
	// pollEvery is how many jumps and calls lie between two looks at the clock,
	// at most. The engine's own 10,000 would be minutes for a script whose every
	// step takes as long as its memory allows.
	pollEvery = 25
	// slowStep is the time between two looks from which on each step is watched.
	slowStep = 5 * time.Millisecond
)

var (
	errOutOfMemory = errors.New("out of memory")
	errDeadline    = errors.New("deadline")
)

// limits bound a call of a script, and say why it was ended. The turn on a processor is
// among them: the time that it is lent to others is not the script's.
type limits struct {
	done     caller
	deadline time.Time // zero until the first call
	halted   error
	starved  bool // memory was refused, in this call or an earlier one
	polled   time.Time
	every    int32           // steps from one look at the clock to the next
	turn     *fairqueue.Turn // of the use of the vm; nil while it is idle
}

// begin starts a call that has to be over within timeout, and ends with ctx.
func (l *limits) begin(ctx caller, timeout time.Duration) {
	now := time.Now()
	*l = limits{done: ctx, deadline: now.Add(timeout), starved: l.starved, polled: now, every: pollEvery, turn: l.turn}
}

// overdue looks at the clock.
func (l *limits) overdue() bool {
	if l.halted == nil {
		switch {
		case l.done != nil && l.done.Err() != nil:
			l.halted = l.done.Err()
		case !time.Now().Before(l.deadline):
			l.halted = errDeadline
		}
	}
	return l.halted != nil
}

// poll looks at the clock after every steps, and says how many there are to the next
// look. It is false when the call has to end.
func (l *limits) poll() bool {
	if l.overdue() {
		return false
	}
	// Steps that take long are counted one by one.
	now := time.Now()
	if l.turn.Wanted(now) {
		if l.yield(now); l.halted != nil {
			return false
		}
		now = time.Now()
		l.polled = now
	}
	l.every = min(2*l.every+1, pollEvery)
	if now.Sub(l.polled) > slowStep {
		l.every = 1
	}
	l.polled = now
	return true
}

// yield lets others have their turn when this one has lasted long enough. The time that
// they take is not the script's. When there is no turn any more the call ends.
func (l *limits) yield(now time.Time) {
	if !l.turn.Wanted(now) || l.halted != nil {
		return
	}
	waited, err := l.turn.Yield(l.done, now)
	l.deadline = l.deadline.Add(waited)
	if err != nil {
		l.halt(err)
	}
}

// halt ends the call for err, unless it was ended already.
func (l *limits) halt(err error) {
	if l.halted == nil {
		l.halted = err
	}
}

// stopped says why the vm cannot go on: its time is over, or its memory. It is
// nil when it can.
func (l *limits) stopped() error {
	switch {
	case l.timedOut():
		return &fault.Error{Kind: fault.BadFunction, Code: "os_process_error", Reason: "OS process timed out.", Err: l.halted}
	case l.halted != nil:
		return l.halted
	case l.starved:
		return &fault.Error{Kind: fault.BadFunction, Code: "out_of_memory", Reason: "The script needs too much memory.", Err: errOutOfMemory}
	}
	return nil
}

// timedOut reports whether the call took too long.
func (l *limits) timedOut() bool {
	return errors.Is(l.halted, errDeadline) || errors.Is(l.halted, context.DeadlineExceeded)
}
