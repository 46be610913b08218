package shard

import (
	"context"
	"sync"
)

// copyState is what this node keeps in memory about a copy while it is written
// to, watched, or broken. A copy without a state is at rest: everything
// applied to it is durable (durableSequence D3), so readers need nothing from here.
//
//	C1. A copyState is in Local.copies from before its first group is applied
//	    until its last one is durable.
//	C2. At most one writer goroutine per copyState; only it builds batches for
//	    the copy's store. It runs while active is set.
type copyState struct {
	local   *Local
	name    string
	durable *durableSequence
	wake    chan struct{} // room for one: the queue is not empty any more

	users int // holders of acquireState and watchers; guarded by Local.mu

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
	recent recentWrites
	purged purgeIndex
	groups uint64 // groups that wrote something
	// recovering: the copy has stopped before and written nothing since. It belongs
	// to the finisher.
	recovering bool
}

// acquireState returns the state of a copy, made when there is none, and keeps
// it until releaseState; the error of one that has failed, which so gets no new
// users.
func (l *Local) acquireState(name string) (*copyState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed()
	}
	c := l.stateLocked(name)
	if err := c.failure(); err != nil {
		return nil, err
	}
	c.users++
	l.wg.Add(1)
	return c, nil
}

// stateLocked returns the state of a copy, made when there is none.
func (l *Local) stateLocked(name string) *copyState {
	c := l.copies[name]
	if c == nil {
		c = &copyState{local: l, name: name, durable: newDurableSequence(), wake: make(chan struct{}, 1)}
		_, c.recovering = l.recovering[name]
		l.copies[name] = c
	}
	return c
}

// releaseState ends what acquireState began.
func (l *Local) releaseState(c *copyState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.users--
	l.forgetIdleLocked(c)
	l.wg.Done()
}

// writerEnded is releaseState for the writer.
func (l *Local) writerEnded(c *copyState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetIdleLocked(c)
}

// forgetIdleLocked removes a state that nobody needs any more (C1). One that has
// failed stays until reopen: what its store shows is not all durable.
func (l *Local) forgetIdleLocked(c *copyState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 && !c.mu.active && c.mu.err == nil && l.copies[c.name] == c {
		delete(l.copies, c.name)
	}
}

// forgetDropped forgets what was known about a copy that was dropped, and returns
// what tells that its writer has ended; nil when it has none.
func (l *Local) forgetDropped(name string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.copies[name]
	if c == nil {
		return nil
	}
	delete(l.copies, name)
	delete(l.recovering, name)
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
func (l *Local) lookup(name string) *copyState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.copies[name]
}

// waitDurable returns when the copy's sequence is durable up to seq.
func (l *Local) waitDurable(ctx context.Context, name string, seq uint64) error {
	return l.waitOn(name, func(d *durableSequence) error { return d.waitSeq(ctx, seq) })
}

// waitUnsequenced returns when the changes of a copy that have no sequence are
// durable.
func (l *Local) waitUnsequenced(ctx context.Context, name string) error {
	return l.waitOn(name, func(d *durableSequence) error { return d.waitUnsequenced(ctx) })
}

// waitOn does a wait at the durable sequence of a copy. One that has stopped is looked
// at again when that is over: the caller has read from the store that is pinned
// now.
func (l *Local) waitOn(name string, wait func(d *durableSequence) error) error {
	for {
		c := l.lookup(name)
		if c == nil {
			return nil
		}
		if err := wait(c.durable); err == nil || !l.reopen(c) {
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
	if c.local.onUpdate != nil {
		c.local.onUpdate(c.name)
	}
}
