package storage

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// scheduler hands the compaction slots of a node to its stores, the most
// urgent first. It replaces Pebble's own scheduler, which knows one store
// only and costs each a goroutine and a ticker.
//
// Invariants:
//
//	S1  at most slots compactions run at a time, and no more of one store than
//	    that store allows itself.
//	S2  a store that was refused by TrySchedule stays in waiting until it says
//	    itself that nothing waits. Pebble never asks a second time: a store
//	    lost from waiting would stop compacting, and with it writing, for ever.
//	    So a store is taken out of waiting before it is asked (a TrySchedule in
//	    between puts it back itself) and put back when it still waits.
//	S3  a store is never asked while mu is held (lock order: store, then mu).
type scheduler struct {
	slots int
	poke  chan struct{}
	mu    struct {
		sync.Mutex
		running int
		waiting map[*compactions]struct{}
	}
}

func newScheduler(slots int) *scheduler {
	s := &scheduler{slots: slots, poke: make(chan struct{}, 1)}
	s.mu.waiting = map[*compactions]struct{}{}
	return s
}

// retryCompaction is how long a store waits after a failed compaction; Pebble
// would try again at once and for ever.
const retryCompaction = 5 * time.Second

// run grants slots when a store's own limit may have risen, which nothing
// announces reliably: one tick for the node.
func (s *scheduler) run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.poke:
		case <-tick.C:
		}
		s.grant()
	}
}

// compactions is one store's side of the scheduler: its
// pebble.CompactionScheduler and the handle of every grant. All fields but
// node and db are guarded by node.mu.
type compactions struct {
	node    *scheduler
	db      pebble.DBForCompaction
	idle    *sync.Cond // calls fell to zero
	running int
	calls   int // calls into db in progress
	closed  bool
	notYet  time.Time // no grant before
}

func (s *scheduler) newStore() *compactions {
	c := &compactions{node: s}
	c.idle = sync.NewCond(&s.mu)
	return c
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) { c.db = db }

// Unregister implements pebble.CompactionScheduler.
func (c *compactions) Unregister() {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.closed = true
	delete(c.node.mu.waiting, c)
	for c.calls > 0 {
		c.idle.Wait()
	}
}

// TrySchedule implements pebble.CompactionScheduler. The store's mutex is held.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	allowed := c.db.GetAllowedWithoutPermission()
	n := c.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return false, nil
	}
	if n.mu.running < n.slots && c.running < allowed && !c.delayedLocked() {
		c.takeLocked()
		return true, c
	}
	n.mu.waiting[c] = struct{}{}
	return false, nil
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler. The
// store's mutex is held, so the grant is left to run.
func (c *compactions) UpdateGetAllowedWithoutPermission() {
	select {
	case c.node.poke <- struct{}{}:
	default:
	}
}

// Started implements pebble.CompactionGrantHandle.
func (c *compactions) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (c *compactions) Done() {
	c.node.mu.Lock()
	c.giveBackLocked()
	if !c.closed {
		c.node.mu.waiting[c] = struct{}{} // it may have more work
	}
	c.node.mu.Unlock()
	c.node.grant()
}

// delay keeps the store from compacting for a while.
func (c *compactions) delay(d time.Duration) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.notYet = time.Now().Add(d)
}

// busy reports whether a compaction of the store is running.
func (c *compactions) busy() bool {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	return c.running > 0
}

func (c *compactions) delayedLocked() bool {
	return !c.notYet.IsZero() && time.Now().Before(c.notYet)
}

func (c *compactions) takeLocked() {
	c.running++
	c.node.mu.running++
}

func (c *compactions) giveBackLocked() {
	c.running--
	c.node.mu.running--
}

// grant hands out slots until none is free or nobody can use one.
func (s *scheduler) grant() {
	for {
		s.mu.Lock()
		if s.mu.running >= s.slots || len(s.mu.waiting) == 0 {
			s.mu.Unlock()
			return
		}
		candidates := make([]*compactions, 0, len(s.mu.waiting))
		for c := range s.mu.waiting {
			if !c.delayedLocked() {
				candidates = append(candidates, c)
			}
		}
		s.mu.Unlock()
		best := mostUrgent(candidates)
		if best == nil || !best.schedule() {
			return
		}
	}
}

// mostUrgent asks every candidate what waits and returns the one whose
// compaction matters most, nil when none can run now.
func mostUrgent(candidates []*compactions) *compactions {
	var best *compactions
	var work pebble.WaitingCompaction
	for _, c := range candidates {
		w, ok := c.ask()
		if ok && (best == nil || moreUrgent(w, work)) {
			best, work = c, w
		}
	}
	return best
}

func moreUrgent(a, b pebble.WaitingCompaction) bool {
	switch {
	case a.Optional != b.Optional:
		return b.Optional
	case a.Priority != b.Priority:
		return a.Priority > b.Priority
	}
	return a.Score > b.Score
}

// ask returns what waits in the store; ok is false when nothing does or the
// store is at its own limit.
func (c *compactions) ask() (w pebble.WaitingCompaction, ok bool) {
	if !c.enter() {
		return w, false
	}
	waits, w := c.db.GetWaitingCompaction()
	allowed := c.db.GetAllowedWithoutPermission()
	c.leave(waits)
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	return w, waits && c.running < allowed
}

// enter begins a call into the store: it leaves waiting (S2) and cannot be
// unregistered until leave.
func (c *compactions) enter() bool {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if c.closed {
		return false
	}
	delete(c.node.mu.waiting, c)
	c.calls++
	return true
}

func (c *compactions) leave(waits bool) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if waits && !c.closed {
		c.node.mu.waiting[c] = struct{}{}
	}
	if c.calls--; c.calls == 0 {
		c.idle.Broadcast()
	}
}

// schedule gives the store a slot. It reports whether to look for more work:
// not when the last slot went to somebody else meanwhile.
func (c *compactions) schedule() bool {
	n := c.node
	n.mu.Lock()
	if c.closed {
		n.mu.Unlock()
		return true
	}
	if n.mu.running >= n.slots {
		n.mu.Unlock()
		return false
	}
	c.takeLocked()
	c.calls++
	n.mu.Unlock()
	accepted := c.db.Schedule(c)
	if !accepted {
		n.mu.Lock()
		c.giveBackLocked()
		n.mu.Unlock()
	}
	c.leave(accepted)
	return true
}
