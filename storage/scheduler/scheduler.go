// Package scheduler shares the compaction slots of a node among its stores. It
// knows of a store only what Pebble tells a scheduler of compactions.
package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Scheduler hands the compaction slots of a node to its stores, the most
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
type Scheduler struct {
	slots int
	poke  chan struct{}
	mu    struct {
		sync.Mutex
		running int
		waiting map[*StoreScheduler]struct{}
		held    bool   // no compaction of a derived store begins
		resumed uint64 // how often HoldDerived ended all delays
	}
}

// New returns a scheduler with so many slots.
func New(slots int) *Scheduler {
	s := &Scheduler{slots: slots, poke: make(chan struct{}, 1)}
	s.mu.waiting = map[*StoreScheduler]struct{}{}
	return s
}

// Slots returns how many compactions may run at a time.
func (s *Scheduler) Slots() int { return s.slots }

// Running returns how many run.
func (s *Scheduler) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.running
}

// HoldDerived keeps compactions of derived stores from beginning, or lets them
// begin again: then what was delayed need not wait any longer either.
func (s *Scheduler) HoldDerived(hold bool) {
	s.mu.Lock()
	s.mu.held = hold
	if !hold {
		s.mu.resumed++
	}
	s.mu.Unlock()
	s.wake()
}

// wake makes Run look for what can be granted.
func (s *Scheduler) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// Run grants slots when a store's own limit may have risen, which nothing
// announces reliably: one tick for the node.
func (s *Scheduler) Run(ctx context.Context) {
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

// StoreScheduler is one store's side of the scheduler: its
// pebble.CompactionScheduler and the handle of every grant. All fields but
// node and db are guarded by node.mu.
type StoreScheduler struct {
	node    *Scheduler
	db      pebble.DBForCompaction
	idle    *sync.Cond // calls fell to zero
	running int
	calls   int // calls into db in progress
	closed  bool
	notYet  time.Time // no grant before
	resumed uint64    // Scheduler.mu.resumed when notYet was set
	derived bool
}

// ForStore returns the scheduler of one store.
func (s *Scheduler) ForStore() *StoreScheduler {
	c := &StoreScheduler{node: s}
	c.idle = sync.NewCond(&s.mu)
	return c
}

// Register implements pebble.CompactionScheduler.
func (c *StoreScheduler) Register(_ int, db pebble.DBForCompaction) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.db = db
}

// Registered reports whether the store has come so far in being opened that it
// can compact.
func (c *StoreScheduler) Registered() bool {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	return c.db != nil
}

// Unregister implements pebble.CompactionScheduler.
func (c *StoreScheduler) Unregister() {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.closed = true
	delete(c.node.mu.waiting, c)
	for c.calls > 0 {
		c.idle.Wait()
	}
}

// TrySchedule implements pebble.CompactionScheduler. The store's mutex is held.
func (c *StoreScheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
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
func (c *StoreScheduler) UpdateGetAllowedWithoutPermission() {
	c.node.wake()
}

// Started implements pebble.CompactionGrantHandle.
func (c *StoreScheduler) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (c *StoreScheduler) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (c *StoreScheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements pebble.CompactionGrantHandle.
func (c *StoreScheduler) Done() {
	c.node.mu.Lock()
	c.giveBackLocked()
	if !c.closed {
		c.node.mu.waiting[c] = struct{}{} // it may have more work
	}
	c.node.mu.Unlock()
	c.node.grant()
}

// Delay keeps the store from compacting for a while.
func (c *StoreScheduler) Delay(d time.Duration) {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	c.resumed = c.node.mu.resumed
	c.notYet = time.Now().Add(d)
}

// SetDerived says that the store can be made again from others: see HoldDerived. It
// is called before the store is opened.
func (c *StoreScheduler) SetDerived(derived bool) { c.derived = derived }

// Busy reports whether a compaction of the store is running.
func (c *StoreScheduler) Busy() bool {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	return c.running > 0
}

func (c *StoreScheduler) delayedLocked() bool {
	if c.derived && c.node.mu.held {
		return true
	}
	return !c.notYet.IsZero() && c.resumed == c.node.mu.resumed && time.Now().Before(c.notYet)
}

func (c *StoreScheduler) takeLocked() {
	c.running++
	c.node.mu.running++
}

func (c *StoreScheduler) giveBackLocked() {
	c.running--
	c.node.mu.running--
}

// grant hands out slots until none is free or no store can use one.
func (s *Scheduler) grant() {
	for {
		s.mu.Lock()
		if s.mu.running >= s.slots || len(s.mu.waiting) == 0 {
			s.mu.Unlock()
			return
		}
		candidates := make([]*StoreScheduler, 0, len(s.mu.waiting))
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
func mostUrgent(candidates []*StoreScheduler) *StoreScheduler {
	var best *StoreScheduler
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
func (c *StoreScheduler) ask() (w pebble.WaitingCompaction, ok bool) {
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
func (c *StoreScheduler) enter() bool {
	c.node.mu.Lock()
	defer c.node.mu.Unlock()
	if c.closed {
		return false
	}
	delete(c.node.mu.waiting, c)
	c.calls++
	return true
}

func (c *StoreScheduler) leave(waits bool) {
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
// not when the last slot went to another store meanwhile.
func (c *StoreScheduler) schedule() bool {
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
