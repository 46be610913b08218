package script

import (
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"divan/shard/fairqueue"
	"divan/storage/fault"
)

// EngineName and EngineVersion name what runs the functions: CouchDB's clients and its
// tests look at them. The version is the release that the pinned libquickjs holds.
const (
	EngineName    = "quickjs"
	EngineVersion = "2026-06-04"
)

// Options are the settings of an Engine.
type Options struct {
	Logger  *zap.Logger
	Timeout func() time.Duration // how long a call may take (os_process_timeout); nil: 5 s
	Memory  int64                // bytes of one VM; 0: 64 MB
	// Eval says whether functions may make code of text (eval, Function and the like);
	// nil: they may not. It holds from the next call on.
	Eval func() bool
	// Processors is how many scripts run at the same time, and once more as many
	// validation functions; 0: GOMAXPROCS.
	Processors int
	// MaxVMs is how many VMs exist at a time, at least five, besides those whose list
	// functions wait for their clients; 0: eighteen per processor and one.
	MaxVMs int
}

// Stats are figures of an Engine.
type Stats struct {
	VMs      int    // that exist
	Idle     int    // of them, not in use
	Bytes    int64  // which they had from the system when they were last used
	Started  uint64 // VMs since the start
	Timeouts uint64 // calls that took too long
	Broken   uint64 // VMs that were thrown away: interrupted, out of memory, or changed in what the next use would see

	Queues                 [kinds]fairqueue.Stats // for VMs, by kind of use: see KindNames
	Turns, ValidationTurns fairqueue.Stats        // on a processor
	Parked                 int                    // list functions that wait for their clients or for rows, without a slot
	ParkedBytes            int64                  // of their VMs
	ListsCut               uint64                 // clients that were cut off because too many of them took nothing
	Calls                  CallStats
}

// idleTime is how long a VM that is not in use is kept.
const idleTime = time.Minute

// startTime is how long the engine's own part of a start may take: it matters
// only where nothing moves.
const startTime = time.Minute

// Engine makes VMs, keeps those that have nothing to do for a while, and
// accounts their memory. It is safe for concurrent use.
//
// Invariant: VMs in use hold a slot or are parked, and there are as many slots as VMs
// may exist besides those that are parked; so who has a slot finds space for a VM, if
// need be by closing one that is idle.
//
// LOCKS the queues' before parked.mu; mu is a leaf.
type Engine struct {
	o       Options
	prelude atomic.Pointer[[]byte] // the script of the sandbox, compiled
	queues
	leases     sync.Pool // *lease
	parked     parked
	allowances [2]allowances // for large documents: of validations, of all others
	called     callCounters

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
	if o.Eval == nil {
		o.Eval = func() bool { return false }
	}
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	if o.Processors <= 0 {
		o.Processors = runtime.GOMAXPROCS(0)
	}
	if o.MaxVMs <= 0 {
		o.MaxVMs = 18*o.Processors + 1
	}
	o.MaxVMs = max(o.MaxVMs, kinds)
	e := &Engine{o: o, allowances: [2]allowances{newAllowances(), newAllowances()}}
	e.newQueues()
	return e
}

// Stats returns the figures of now.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	s := e.mu.stats
	s.Idle = len(e.mu.idle)
	e.mu.Unlock()
	for k, q := range e.slots {
		s.Queues[k] = q.Stats()
	}
	s.ValidationTurns, s.Turns = e.turns[0].Stats(), e.turns[1].Stats()
	s.Calls = e.called.stats()
	e.parked.mu.Lock()
	defer e.parked.mu.Unlock()
	s.Parked, s.ParkedBytes, s.ListsCut = len(e.parked.vms), e.parked.bytes, e.parked.cut
	return s
}

// Close closes the VMs that are not in use; the others close when they are
// given back. No new ones are made, and calls that wait for a turn fail.
func (e *Engine) Close() error {
	e.closeQueues()
	for _, r := range e.allowances {
		for _, q := range r {
			q.Close()
		}
	}
	e.mu.Lock()
	e.mu.closed = true
	e.mu.Unlock()
	e.dropIdle(func(*vm) bool { return true })
	return nil
}

// functionSet is the set of functions that a VM is made for: those of one index,
// or of one design document, of one instance of a database. VMs are shared only
// between sets of the same functions of the same instance.
type functionSet struct {
	engine   *Engine
	instance string          // of the database whose functions they are
	key      string          // sets with the same key share VMs; empty: none do
	kind     useKind         // what its VMs are used for
	setUp    func(*vm) error // compiles the functions, in a new VM
	// indexArguments is that of Program, 0 for all other functions.
	indexArguments int
	name           string      // for the log
	told           atomic.Bool // the log has it that a function changes what all share
	closed         bool        // guarded by engine.mu
}

// keyOf is the key of sets that have the same sources and belong to the same
// instance of a database; empty without an instance.
func keyOf(instance string, sources ...[]byte) string {
	if instance == "" {
		return ""
	}
	h := sha256.New()
	for _, source := range sources {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(source)))) // never fails
		_, _ = h.Write(source)
	}
	return instance + "\x00" + string(h.Sum(nil))
}

// caller is the context of who waits for a script; nil: only time limits it.
type caller interface {
	Done() <-chan struct{}
	Err() error
	Value(key any) any
}

// owns reports whether v is for the functions of s.
func (s *functionSet) owns(v *vm) bool { return v.set == s || s.key != "" && v.set.key == s.key }

// acquire returns a VM of the set for the caller alone, who gives it back.
func (s *functionSet) acquire(ctx caller) (*vm, error) { return s.acquireFor(ctx, s.kind) }

// acquireFor is acquire for a use of another kind than the set's.
func (s *functionSet) acquireFor(ctx caller, k useKind) (*vm, error) {
	e := s.engine
	l, err := e.lease(ctx, k, s.instance)
	if err != nil {
		return nil, err
	}
	v, err := e.take(ctx, s, l)
	if err != nil {
		e.end(l, time.Now())
		return nil, err
	}
	return v, nil
}

// take finds an idle VM of the set or makes one, for who has a lease.
func (e *Engine) take(ctx caller, s *functionSet, l *lease) (*vm, error) {
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
			v.use(s, l)
			return v, nil
		}
	}
	if e.mu.stats.VMs-e.parked.count() >= e.o.MaxVMs && len(e.mu.idle) > 0 {
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
	return e.start(ctx, s, l)
}

// start makes a VM of the set, which is counted already.
func (e *Engine) start(ctx caller, s *functionSet, l *lease) (*vm, error) {
	v, err := newVM(e.o.Memory)
	if err == nil {
		v.use(s, l)
		v.begin(nil, startTime)
		if err = v.setUp(); err == nil {
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
	e, l := s.engine, v.lease
	if v.limits.stopped() == nil {
		v.settle()
	}
	changed := !v.endUse()
	if changed && !s.told.Swap(true) {
		e.o.Logger.Info("a function changes built-in objects or globals: it gets a new engine for each call, which is slow", zap.String("functions", s.name))
	}
	v.rest()
	now := time.Now()
	bytes := v.bytes()
	broken := v.limits.halted != nil || v.limits.starved || bytes > e.o.Memory/2 || changed
	e.mu.Lock()
	e.mu.stats.Bytes += bytes - v.accounted
	v.accounted = bytes
	if v.limits.halted != nil && v.limits.timedOut() {
		e.mu.stats.Timeouts++
	}
	if broken {
		e.mu.stats.Broken++
	}
	keep := !broken && !s.closed && !e.mu.closed && e.mu.stats.VMs-e.parked.count() <= e.o.MaxVMs
	v.leave()
	if keep {
		v.idleSince = now
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
	e.end(l, now)
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
