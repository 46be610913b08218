package shard

import (
	"go.uber.org/zap"

	"divan/storage"
)

// reopen lets a copy that has stopped go on once its store works again: a disk
// that was full, or failed for a moment. It reports whether c is no longer in
// the way of requests, so that the caller may look at the copy anew; false
// leaves everything as it is, and the next request tries again.
//
// A store that failed stays failed, and a copyState fails after its store. So a
// store that works was opened later, which happens only when the last pin of
// the failed one has gone. That makes it safe to forget the failure:
//
//   - What the store shows is durable, even where groups failed to sync: opening
//     it has flushed all that the log still held. It is at rest.
//   - No reader has seen anything of a lost group, whose sequences are given
//     out again: a reader waits for durability with its pin, and failed with
//     the copyState.
//   - Edits read without waiting, and keep the store pinned from before that until they
//     are answered: none of the failed store is submitted to this one.
//   - The writer of c, whose memory may be of a lost group, has ended.
//
// It opens files, so it is called without locks.
func (s *copyStates) reopen(c *copyState) bool {
	if c.failure() == nil {
		return false
	}
	store, err := s.engine.Acquire(c.name)
	if err != nil {
		return false // who needs the copy finds out why
	}
	defer s.engine.Release(store)
	return s.resume(c, store)
}

// resume is reopen with a store that the caller has pinned.
func (s *copyStates) resume(c *copyState, store *storage.Store) bool {
	if !s.replaceState(c, store) {
		return false
	}
	c.notifyNode() // a group that failed may have reached the disk all the same
	return true
}

// replaceState makes space for a new copyState instead of c, whose watchers go on with
// it.
func (s *copyStates) replaceState(c *copyState, store *storage.Store) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store.Err() != nil {
		return false
	}
	if s.copies[c.name] != c {
		return true // another goroutine was first
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.active || c.users > len(c.mu.watchers) {
		return false
	}
	delete(s.copies, c.name)
	if c.users == 0 {
		return true
	}
	next := s.stateLocked(c.name)
	next.users, c.users = c.users, 0
	next.mu.watchers, c.mu.watchers = c.mu.watchers, nil
	for w := range next.mu.watchers {
		w.state = next
		w.signal() // a group that failed may have reached the disk all the same
	}
	return true
}

// noteFailure notes that a copyState has failed and reports whether that is news: a
// disk that stays full fails the copy again with every try.
func (s *copyStates) noteFailure(c *copyState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.copies[c.name] != c {
		return true // dropped
	}
	_, known := s.recovering[c.name]
	s.recovering[c.name] = struct{}{}
	return !known
}

// noteRecovery ends what noteFailure began, when a write has become durable.
func (s *copyStates) noteRecovery(name string) {
	s.mu.Lock()
	delete(s.recovering, name)
	s.mu.Unlock()
	s.log.Info("shard copy takes writes again", zap.String("copy", name))
}

// fail stops the copy: its store can no longer make anything durable, and has
// failed before this is called. It stays so until reopen.
func (c *copyState) fail(err error) {
	c.mu.Lock()
	first := c.mu.err == nil
	if first {
		c.mu.err = err
	}
	queue := c.mu.queue
	c.mu.queue = nil
	c.mu.stopping = true
	c.wakeWriter()
	for w := range c.mu.watchers {
		w.signal() // nothing else would tell that they wait in vain
	}
	c.mu.Unlock()
	c.durable.fail(err)
	for _, j := range queue {
		if j.state.CompareAndSwap(jobQueued, jobTaken) {
			j.answer(err)
		}
	}
	if first && c.states.noteFailure(c) {
		c.states.log.Error("shard copy stopped", zap.String("copy", c.name), zap.Error(err))
	}
}

// failure returns why the copy stopped, nil while it works.
func (c *copyState) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}
