package shard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"divan/shard/recentwrites"
	"divan/storage"
)

// copyState is the state that this node keeps in memory about a copy while it is
// written to, watched, or broken. A copy without a state is at rest: everything
// applied to it is durable (durableSequence D3), so readers need nothing from here.
//
//	C1. A copyState is in copyStates.copies from before its first group is applied
//	    until its last one is durable.
//	C2. At most one writer goroutine per copyState; only it builds batches for
//	    the copy's store. It runs while active is set.
type copyState struct {
	states  *copyStates
	name    string
	durable *durableSequence
	wake    chan struct{} // space for one: the queue is not empty any more

	users int // holders of acquire and watchers; guarded by copyStates.mu

	mu struct {
		sync.Mutex
		queue    []*job
		active   bool          // the writer runs
		exited   chan struct{} // closed when the writer that runs has ended
		stopping bool          // the copy was dropped or has stopped: do not linger
		err      error
		watchers map[*Watch]struct{}
	}

	// The rest belongs to the writer.
	recent recentwrites.Writes
	purged purgeIndex
	groups uint64 // groups that wrote something
	// recovering: the copy has stopped before and written nothing since. It belongs
	// to the finisher.
	recovering bool
}

// copyStates is the copies of this node that are written to, watched, or broken, and the
// way to the stores of all: what every operation on a copy goes through.
type copyStates struct {
	engine      *storage.Engine
	log         *zap.Logger
	onUpdate    func(copy string)
	onDesignDoc func(copy string)

	clock   atomic.Uint64  // counts applied groups of all copies, see recentwrites.Writes
	closing chan struct{}  // closed by close
	wg      sync.WaitGroup // writers, running compactions and clones, holders of copy states

	mu         sync.RWMutex
	closed     bool
	copies     map[string]*copyState
	recovering map[string]struct{} // copies that have stopped and written nothing since
}

func newCopyStates(o *Options) *copyStates {
	log := o.Logger
	if log == nil {
		log = zap.NewNop()
	}
	return &copyStates{
		engine: o.Engine, log: log, onUpdate: o.OnUpdate, onDesignDoc: o.OnDesignDoc,
		closing: make(chan struct{}), copies: make(map[string]*copyState), recovering: make(map[string]struct{}),
	}
}

// close has all that begins from now on refused, and the writers end once their queues are empty.
func (s *copyStates) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
}

// spawn runs f on a goroutine of its own, which Local.Close waits for; false once that has begun.
func (s *copyStates) spawn(f func()) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

// pin opens a copy's store for reading; release it with engine.Release.
func (s *copyStates) pin(ctx context.Context, name string) (*storage.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	store, err := s.engine.Acquire(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return store, nil
}

// snapshot takes a snapshot of a copy and returns when it is durable. The
// snapshot keeps the store pinned.
func (s *copyStates) snapshot(ctx context.Context, name string) (*storage.Snapshot, [16]byte, error) {
	store, err := s.pin(ctx, name)
	if err != nil {
		return nil, [16]byte{}, err
	}
	defer s.engine.Release(store)
	snap, err := store.Snapshot()
	if err != nil {
		return nil, [16]byte{}, fmt.Errorf("snapshot of %s: %w", name, err)
	}
	if err = s.waitDurable(ctx, name, snap.Seq()); err == nil {
		err = s.waitUnsequenced(ctx, name)
	}
	if err != nil {
		_ = snap.Close()
		return nil, [16]byte{}, err
	}
	return snap, store.UUID(), nil
}

// acquire returns the state of the copy whose store the caller has pinned, made when there
// is none, and keeps it until release; the error of one that has failed, which so gets no new
// users. One that has failed before the store was opened goes on.
func (s *copyStates) acquire(store *storage.Store) (*copyState, error) {
	for {
		c, err := s.tryAcquire(store.Name())
		if err == nil || c == nil || !s.resume(c, store) {
			return c, err
		}
	}
}

// tryAcquire is acquire without going on. With the error of a state that has failed it returns
// that as well.
func (s *copyStates) tryAcquire(name string) (*copyState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	c := s.stateLocked(name)
	if err := c.failure(); err != nil {
		return c, err
	}
	c.users++
	s.wg.Add(1)
	return c, nil
}

// stateLocked returns the state of a copy, made when there is none.
func (s *copyStates) stateLocked(name string) *copyState {
	c := s.copies[name]
	if c == nil {
		c = &copyState{states: s, name: name, durable: newDurableSequence(), wake: make(chan struct{}, 1)}
		_, c.recovering = s.recovering[name]
		s.copies[name] = c
	}
	return c
}

// release ends what acquire began.
func (s *copyStates) release(c *copyState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.users--
	s.forgetIdleLocked(c)
	s.wg.Done()
}

// writerEnded is release for the writer.
func (s *copyStates) writerEnded(c *copyState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetIdleLocked(c)
}

// forgetIdleLocked removes a state that is not in use any more (C1). A state
// that has failed stays until reopen: what its store shows is not all durable.
func (s *copyStates) forgetIdleLocked(c *copyState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 && !c.mu.active && c.mu.err == nil && s.copies[c.name] == c {
		delete(s.copies, c.name)
	}
}

// forgetDropped forgets what was known about a copy that was dropped, and returns
// what tells that its writer has ended; nil when it has none.
func (s *copyStates) forgetDropped(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.copies[name]
	if c == nil {
		return nil
	}
	delete(s.copies, name)
	delete(s.recovering, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.stopping = true
	c.wakeWriter()
	for w := range c.mu.watchers {
		w.signal()
	}
	if !c.mu.active {
		return nil
	}
	return c.mu.exited
}

// lookup returns the state of a copy, nil when the copy is at rest. It has
// to be called after the store was read (durableSequence D3).
func (s *copyStates) lookup(name string) *copyState {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.copies[name]
}

// waitDurable returns when the copy's sequence is durable up to seq.
func (s *copyStates) waitDurable(ctx context.Context, name string, seq uint64) error {
	return s.waitOn(name, func(d *durableSequence) error { return d.waitSeq(ctx, seq) })
}

// waitUnsequenced returns when the changes of a copy that have no sequence are
// durable.
func (s *copyStates) waitUnsequenced(ctx context.Context, name string) error {
	return s.waitOn(name, func(d *durableSequence) error { return d.waitUnsequenced(ctx) })
}

// waitOn does a wait at the durable sequence of a copy. One that has stopped is looked
// at again when that is over: the caller has read from the store that is pinned
// now.
func (s *copyStates) waitOn(name string, wait func(d *durableSequence) error) error {
	for {
		c := s.lookup(name)
		if c == nil {
			return nil
		}
		if err := wait(c.durable); err == nil || !s.reopen(c) {
			return err
		}
	}
}

// notifyWatchers wakes the watchers of the copy and tells the node.
func (c *copyState) notifyWatchers() {
	c.mu.Lock()
	for w := range c.mu.watchers {
		w.signal()
	}
	c.mu.Unlock()
	c.notifyNode()
}

// notifyNode tells the node that the copy has something for other copies.
func (c *copyState) notifyNode() {
	if c.states.onUpdate != nil {
		c.states.onUpdate(c.name)
	}
}
