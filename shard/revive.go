package shard

import (
	"go.uber.org/zap"

	"divan/storage"
)

// revive lets a copy that has stopped go on once its store works again: a disk
// that was full, or failed for a moment. It reports whether r stands in nobody's
// way any more, so that the caller may look at the copy anew; false leaves
// everything as it is, and the next request tries again.
//
// A store that failed stays failed, and a replica fails after its store. So a
// store that works was opened later, which happens only when the last pin of
// the failed one has gone. That makes it safe to forget the failure:
//
//   - What the store shows is durable, whatever became of the rounds whose sync
//     failed: opening it has flushed all that the log still held. It is at rest.
//   - Nobody has seen anything of a lost round, whose sequences are given out
//     again: a reader waits for durability with its pin, and failed with the
//     replica.
//   - Only requests that wait to be submitted have read without waiting; the
//     mark in Local.revived makes them read again.
//   - The writer of r, whose memory may be of a lost round, has ended.
//
// It opens files, so it is called without locks.
func (l *Local) revive(r *replica) bool {
	if r.failure() == nil {
		return false
	}
	store, err := l.engine.Acquire(r.name)
	if err != nil {
		return false // who needs the copy finds out why
	}
	defer l.engine.Release(store)
	if !l.replace(r, store) {
		return false
	}
	r.tell() // a round that failed may have reached the disk all the same
	return true
}

// replace makes room for a new replica instead of r, whose watchers go on with
// it.
func (l *Local) replace(r *replica, store *storage.Store) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if store.Err() != nil {
		return false
	}
	if l.copies[r.name] != r {
		return true // somebody else was first
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.active || r.users > len(r.mu.watchers) {
		return false
	}
	l.revived.Store(l.clock.Add(1))
	delete(l.copies, r.name)
	if r.users == 0 {
		return true
	}
	next := l.replicaLocked(r.name)
	next.users, r.users = r.users, 0
	next.mu.watchers, r.mu.watchers = r.mu.watchers, nil
	for w := range next.mu.watchers {
		w.replica = next
		w.signal() // a round that failed may have reached the disk all the same
	}
	return true
}

// stopped notes that a replica has failed and reports whether that is news: a
// disk that stays full fails the copy again with every try.
func (l *Local) stopped(r *replica) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.copies[r.name] != r {
		return true // dropped
	}
	_, known := l.troubled[r.name]
	l.troubled[r.name] = struct{}{}
	return !known
}

// recovered ends what stopped began, when a write has become durable.
func (l *Local) recovered(name string) {
	l.mu.Lock()
	delete(l.troubled, name)
	l.mu.Unlock()
	l.log.Info("shard copy takes writes again", zap.String("copy", name))
}
