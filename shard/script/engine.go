package script

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// Options are the settings of an Engine.
type Options struct {
	Logger  *zap.Logger
	Timeout func() time.Duration // how long a call may take (os_process_timeout); nil: 5 s
	Memory  int64                // bytes of one VM; 0: 64 MB
	MaxVMs  int                  // VMs that exist at a time; 0: four per processor
}

// Stats are figures of an Engine.
type Stats struct {
	VMs      int    // that exist
	Idle     int    // of them, that nobody uses
	Bytes    int64  // which they had from the system when they were last used
	Started  uint64 // VMs since the start
	Timeouts uint64 // calls that took too long
	Broken   uint64 // VMs that were thrown away: interrupted, or out of memory
}

// idleTime is how long a VM that nobody uses is kept.
const idleTime = time.Minute

// startTime is how long the engine's own part of a start may take: it matters
// only where nothing moves.
const startTime = time.Minute

// Engine makes VMs, keeps those that have nothing to do for a while, and
// accounts their memory. It is safe for concurrent use.
//
// Invariant: VMs in use hold a slot, and there are as many slots as VMs may
// exist; so who has a slot finds room for a VM, if need be by closing one that
// is idle. Slots are of two kinds, because a function of a design document may
// wait for a view (a list does), but map and reduce functions wait for nothing.
type Engine struct {
	o                Options
	indexes, designs chan struct{}          // slots
	prelude          atomic.Pointer[[]byte] // the script of the sandbox, compiled

	mu struct {
		sync.Mutex
		stats  Stats
		idle   []*vm // the longest unused first
		closed bool
		expiry *time.Timer // runs while there are idle VMs
	}
}

// New returns an engine. It starts nothing.
func New(o Options) *Engine {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	if o.Timeout == nil {
		o.Timeout = func() time.Duration { return 5 * time.Second }
	}
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	if o.MaxVMs <= 0 {
		o.MaxVMs = 4 * runtime.GOMAXPROCS(0)
	}
	half := max(o.MaxVMs/2, 1)
	o.MaxVMs = max(o.MaxVMs, 2)
	return &Engine{o: o, indexes: make(chan struct{}, o.MaxVMs-half), designs: make(chan struct{}, half)}
}

// Stats returns the figures of now.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.mu.stats
	s.Idle = len(e.mu.idle)
	return s
}

// Close closes the VMs that nobody uses; the others close when they are given
// back. No new ones are made.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.mu.closed = true
	e.mu.Unlock()
	e.dropIdle(func(*vm) bool { return true })
	return nil
}

// functionSet is what a VM is made for: the functions of one index, or of one
// design document. VMs are never shared between sets.
type functionSet struct {
	engine *Engine
	key    string // sets with the same key share VMs; empty: none do
	slots  chan struct{}
	setUp  func(*vm) error // compiles the functions, in a new VM
	closed bool            // guarded by engine.mu
}

// caller is the context of who waits for a script; nil: only time limits it.
type caller interface {
	Done() <-chan struct{}
	Err() error
}

// owns reports whether v is for the functions of s.
func (s *functionSet) owns(v *vm) bool { return v.set == s || s.key != "" && v.set.key == s.key }

// acquire returns a VM of the set for the caller alone, who gives it back.
func (s *functionSet) acquire(ctx caller) (*vm, error) {
	e := s.engine
	var cancelled <-chan struct{}
	if ctx != nil {
		cancelled = ctx.Done()
	}
	patience := time.NewTimer(e.o.Timeout())
	defer patience.Stop()
	select {
	case s.slots <- struct{}{}:
	case <-cancelled:
		return nil, ctx.Err()
	case <-patience.C:
		return nil, fault.New(fault.Timeout, "No JavaScript engine became free in time.")
	}
	v, err := e.take(ctx, s)
	if err != nil {
		<-s.slots
		return nil, err
	}
	return v, nil
}

// take finds an idle VM of the set or makes one; the caller has a slot.
func (e *Engine) take(ctx caller, s *functionSet) (*vm, error) {
	e.mu.Lock()
	if e.mu.closed {
		e.mu.Unlock()
		return nil, fault.New(fault.Closed, "The JavaScript engine is closed.")
	}
	var oldest *vm
	for i := len(e.mu.idle) - 1; i >= 0; i-- {
		if v := e.mu.idle[i]; s.owns(v) {
			e.mu.idle = slices.Delete(e.mu.idle, i, i+1)
			e.mu.Unlock()
			v.set = s
			return v, nil
		}
	}
	if e.mu.stats.VMs >= e.o.MaxVMs && len(e.mu.idle) > 0 {
		oldest = e.mu.idle[0]
		e.mu.idle = slices.Delete(e.mu.idle, 0, 1)
		e.forgetLocked(oldest)
	}
	e.mu.stats.VMs++
	e.mu.stats.Started++
	e.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
	return e.start(ctx, s)
}

// start makes a VM of the set, which is counted already.
func (e *Engine) start(ctx caller, s *functionSet) (*vm, error) {
	v, err := newVM(e.o.Memory)
	if err == nil {
		v.set = s
		v.begin(nil, startTime)
		if err = v.sandbox(); err == nil {
			v.begin(ctx, e.o.Timeout())
			err = s.setUp(v)
		}
		if err != nil {
			v.close()
		}
	}
	if err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.mu.stats.VMs--
		return nil, err
	}
	return v, nil
}

// release takes a VM back. One that was interrupted or had no memory left is
// closed: what its scripts left behind is unknown.
func (s *functionSet) release(v *vm) {
	e := s.engine
	if v.stopped() == nil {
		v.settle()
	}
	v.rest()
	bytes := v.bytes()
	broken := v.halted != nil || v.starved || bytes > e.o.Memory/2
	e.mu.Lock()
	e.mu.stats.Bytes += bytes - v.accounted
	v.accounted = bytes
	if v.halted != nil && v.timedOut() {
		e.mu.stats.Timeouts++
	}
	if broken {
		e.mu.stats.Broken++
	}
	keep := !broken && !s.closed && !e.mu.closed
	if keep {
		v.idleSince = time.Now()
		e.mu.idle = append(e.mu.idle, v)
		if e.mu.expiry == nil {
			e.mu.expiry = time.AfterFunc(idleTime, e.expire)
		}
	} else {
		e.forgetLocked(v)
	}
	e.mu.Unlock()
	if !keep {
		v.close()
	}
	<-s.slots
}

// close closes the VMs of the set.
func (s *functionSet) close() {
	s.engine.mu.Lock()
	s.closed = true
	s.engine.mu.Unlock()
	s.engine.dropIdle(s.owns)
}

// expire closes what was idle for too long.
func (e *Engine) expire() {
	e.mu.Lock()
	e.mu.expiry = nil
	e.mu.Unlock()
	limit := time.Now().Add(-idleTime)
	e.dropIdle(func(v *vm) bool { return !v.idleSince.After(limit) })
}

// dropIdle closes the idle VMs that drop says.
func (e *Engine) dropIdle(drop func(*vm) bool) {
	e.mu.Lock()
	var gone []*vm
	e.mu.idle = slices.DeleteFunc(e.mu.idle, func(v *vm) bool {
		if !drop(v) {
			return false
		}
		gone = append(gone, v)
		e.forgetLocked(v)
		return true
	})
	switch {
	case len(e.mu.idle) == 0 && e.mu.expiry != nil:
		e.mu.expiry.Stop()
		e.mu.expiry = nil
	case len(e.mu.idle) > 0 && e.mu.expiry == nil:
		e.mu.expiry = time.AfterFunc(idleTime, e.expire)
	}
	e.mu.Unlock()
	for _, v := range gone {
		v.close()
	}
}

// forgetLocked takes a VM off the figures.
func (e *Engine) forgetLocked(v *vm) {
	e.mu.stats.VMs--
	e.mu.stats.Bytes -= v.accounted
}
