package fairqueue

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"divan/storage/fault"
)

// Options configure a Queue.
type Options struct {
	Capacity int
	// Shares keeps turns free of any single database, and of any single account: for
	// what is held for long and cannot be given up half way.
	Shares bool
	// Yielded is asked about a holder that is away and whose turn is wanted, and reports
	// whether it may be taken; nil: any may. It is called with the queue locked.
	Yielded func(t *Turn) bool
	// Busy is the refusal of who has waited too long.
	Busy error
}

// Stats are figures of a Queue.
type Stats struct {
	Held, Waiting  int
	Given, Refused uint64 // turns since the start
	Waited         time.Duration
}

// Queue gives out turns. It is safe for concurrent use.
type Queue struct {
	o       Options
	waiting atomic.Int32 // uses that wait
	mu      struct {
		sync.Mutex
		schedule *schedule
		closed   bool
		away     map[*Turn]struct{}
		timer    *time.Timer // runs while a caller waits and a holder is away
		stats    Stats
	}
}

// New returns a queue.
func New(o Options) *Queue {
	q := &Queue{o: o}
	q.mu.schedule = newSchedule(o.Capacity, o.Shares)
	q.mu.away = map[*Turn]struct{}{}
	return q
}

// Turn is the turn of one who uses it, and used again when that is over. The zero value
// has none. It belongs to one goroutine.
type Turn struct {
	Holder any // what Options.Yielded wants to know
	q      *Queue
	use    use
	since  time.Time     // since when it runs
	used   time.Duration // before that
	state  turnState     // guarded by the queue's lock
	ready  chan struct{} // buffered; made by the first wait
}

type turnState uint8

const (
	turnNone turnState = iota
	turnWaiting
	turnHeld
	turnAway  // the holder waits for something else
	turnTaken // and its turn was wanted meanwhile
)

// caller is the context of one who waits; nil: only time limits it.
type caller interface {
	Done() <-chan struct{}
	Err() error
}

// Acquire waits for a turn until patience is over, which gives Options.Busy; 0: without
// limit. The holder of the turn calls Release; now is the time.
func (q *Queue) Acquire(ctx caller, t *Turn, f Flow, now time.Time, patience time.Duration) error {
	q.mu.Lock()
	if q.mu.closed {
		q.mu.Unlock()
		return errClosed()
	}
	t.q, t.used = q, 0
	if q.mu.schedule.add(&t.use, f) {
		q.mu.stats.Given++
		t.state, t.since = turnHeld, now
		q.mu.Unlock()
		return nil
	}
	q.waitsLocked(t)
	q.mu.Unlock()
	return q.wait(ctx, t, now, patience)
}

// waitsLocked notes that a turn is waited for.
func (q *Queue) waitsLocked(t *Turn) {
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	t.state, t.use.turn = turnWaiting, t
	q.waiting.Add(1)
	q.watchLocked()
}

// wait returns with the turn, or gives it up.
func (q *Queue) wait(ctx caller, t *Turn, now time.Time, patience time.Duration) error {
	var cancelled <-chan struct{}
	if ctx != nil {
		cancelled = ctx.Done()
	}
	var over <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		over = timer.C
	}
	var err error
	select {
	case <-t.ready:
	case <-cancelled:
		err = ctx.Err()
	case <-over:
		err = q.o.Busy
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t.since = time.Now()
	q.mu.stats.Waited += t.since.Sub(now)
	if err == nil {
		if t.state == turnNone {
			return errClosed()
		}
		return nil
	}
	if q.o.Busy != nil && err == q.o.Busy { //nolint:errorlint // it is that very one
		q.mu.stats.Refused++
	}
	if t.state == turnWaiting {
		q.mu.schedule.takeOut(&t.use)
		q.waiting.Add(-1)
		t.state = turnNone
		return err
	}
	<-t.ready // it came meanwhile
	q.endLocked(t, 0)
	return err
}

// dispatchLocked gives out the turns that are free.
func (q *Queue) dispatchLocked() {
	for q.mu.schedule.waiting > 0 {
		u := q.mu.schedule.next()
		if u == nil {
			return
		}
		q.mu.stats.Given++
		q.waiting.Add(-1)
		u.turn.state = turnHeld
		u.turn.ready <- struct{}{}
	}
}

// endLocked ends a turn.
func (q *Queue) endLocked(t *Turn, took time.Duration) {
	delete(q.mu.away, t)
	if t.state == turnHeld || t.state == turnAway {
		q.mu.schedule.end(&t.use, took)
	}
	t.state = turnNone
	q.dispatchLocked()
}

// Release ends the turn.
func (t *Turn) Release(now time.Time) {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(t, t.used+now.Sub(t.since))
}

// Wanted reports whether others wait, and this turn has lasted long enough.
func (t *Turn) Wanted(now time.Time) bool {
	return t.q.waiting.Load() > 0 && now.Sub(t.since) >= Slice
}

// Yield gives the turn to those who wait, and takes another one behind them. It returns
// the time that took, and an error when there is no turn any more.
func (t *Turn) Yield(ctx caller, now time.Time) (waited time.Duration, err error) {
	q := t.q
	q.mu.Lock()
	if q.mu.closed || t.state != turnHeld {
		q.mu.Unlock()
		return 0, errClosed()
	}
	q.mu.schedule.end(&t.use, t.used+now.Sub(t.since))
	t.used = 0
	q.mu.schedule.enqueue(&t.use)
	q.waitsLocked(t)
	q.dispatchLocked()
	q.mu.Unlock()
	err = q.wait(ctx, t, now, 0)
	return t.since.Sub(now), err
}

// Leave tells that the holder waits for something else: another caller may have the
// turn after a moment.
func (t *Turn) Leave(now time.Time) {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.state != turnHeld {
		return
	}
	t.used += now.Sub(t.since)
	t.state, t.since = turnAway, now
	q.mu.away[t] = struct{}{}
	q.watchLocked()
}

// Return goes on after Leave, perhaps with another turn.
func (t *Turn) Return(ctx caller, now time.Time) error {
	q := t.q
	q.mu.Lock()
	delete(q.mu.away, t)
	if t.state != turnTaken {
		t.state, t.since = turnHeld, now
		q.mu.Unlock()
		return nil
	}
	t.state, t.used = turnNone, 0
	if q.mu.closed {
		q.mu.Unlock()
		return errClosed()
	}
	if q.mu.schedule.add(&t.use, t.use.of.is()) {
		t.state, t.since = turnHeld, now
		q.mu.Unlock()
		return nil
	}
	q.waitsLocked(t)
	q.mu.Unlock()
	return q.wait(ctx, t, now, 0)
}

// Abandon is Return for a holder that does nothing more but Release. It does not wait.
func (t *Turn) Abandon() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(t, t.used)
}

// watchLocked looks after holders that are away while a caller waits.
func (q *Queue) watchLocked() {
	if q.mu.timer == nil && q.mu.schedule.waiting > 0 && len(q.mu.away) > 0 {
		q.mu.timer = time.AfterFunc(Slice, q.takeBack)
	}
}

// takeBack takes the turns of holders that have been away for a moment, of the one that
// has been away for longest first.
func (q *Queue) takeBack() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.timer = nil
	before := time.Now().Add(-Slice)
	away := slices.SortedFunc(maps.Keys(q.mu.away), func(a, b *Turn) int { return a.since.Compare(b.since) })
	for _, t := range away {
		if q.mu.schedule.waiting == 0 || t.since.After(before) {
			break
		}
		if q.o.Yielded != nil && !q.o.Yielded(t) {
			continue
		}
		delete(q.mu.away, t)
		q.mu.schedule.end(&t.use, t.used)
		t.state = turnTaken
		q.dispatchLocked()
	}
	q.watchLocked()
}

// Close refuses all callers that wait, and all that come later. Turns that are
// held end as usual.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.closed = true
	for q.mu.schedule.waiting > 0 {
		u := q.mu.schedule.active[0].active[0].uses[0]
		q.mu.schedule.takeOut(u)
		q.waiting.Add(-1)
		u.turn.state = turnNone
		u.turn.ready <- struct{}{}
	}
	if q.mu.timer != nil {
		q.mu.timer.Stop()
		q.mu.timer = nil
	}
}

// Stats returns the figures of now.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.mu.stats
	s.Held, s.Waiting = q.o.Capacity-q.mu.schedule.free, q.mu.schedule.waiting
	return s
}

func errClosed() error { return fault.New(fault.Closed, "the node is shutting down") }
