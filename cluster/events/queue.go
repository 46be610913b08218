// Package events writes what happens to databases into the database that _db_updates reads. No
// writer of documents ever waits for that: events are kept in a set of bounded size, and when it is
// full the rest is lost. CouchDB promises no more (api.md section 4.3).
package events

import (
	"strings"
	"sync"

	"divan/cluster/meta"
)

// GlobalChanges is the database of what happened to databases: one document
// for each database and kind of event, whose latest revision stands for the
// latest event.
const GlobalChanges = "_global_changes"

// ShardsOf returns how many shards a new database gets when no number was asked for. The database
// of the events gets one, so that they are read in the order they were written in.
func ShardsOf(name string, usual int) int {
	if name == GlobalChanges {
		return 1
	}
	return usual
}

// Prefixes of the documents' ids, before the name of the database.
const (
	CreatedPrefix = "created:"
	UpdatedPrefix = "updated:"
	DeletedPrefix = "deleted:"
)

// maxWaiting bounds what waits to be written.
const maxWaiting = 1 << 16

// Queue holds the events that the Writer has not looked at yet. The zero value takes nothing until
// a Writer runs.
//
// LOCKS: mu guards the fields only.
type Queue struct {
	mu     sync.Mutex
	copies map[string]struct{} // copies that have moved on, by name
	events []string            // ids of documents for databases made or deleted, in order
	lost   int                 // what there was no space for
	wake   chan struct{}       // has space for one; nil while no Writer runs
}

// Updated tells that a copy of this node has something new that is durable. It
// returns at once: it is called for every write.
func (q *Queue) Updated(copyName string) {
	if ofGlobalChanges(copyName) {
		return // or each event would be the next one
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.copies[copyName]; known || q.wake == nil {
		return
	}
	if len(q.copies) >= maxWaiting {
		q.lost++
		return
	}
	q.copies[copyName] = struct{}{}
	wakeUp(q.wake)
}

// ofGlobalChanges reports whether a copy belongs to that database, without
// taking its name apart.
func ofGlobalChanges(copyName string) bool {
	const before = len("shards/00000000-7fffffff/")
	return len(copyName) > before && strings.HasPrefix(copyName[before:], GlobalChanges+".")
}

// happened notes that a database was made or deleted.
func (q *Queue) happened(prefix, db string) {
	if db == GlobalChanges {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.wake == nil:
	case len(q.events) >= maxWaiting:
		q.lost++
	default:
		q.events = append(q.events, prefix+db)
		wakeUp(q.wake)
	}
}

// take returns what was noticed, and forgets it.
func (q *Queue) take() (copies map[string]struct{}, events []string, lost int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	copies, events, lost = q.copies, q.events, q.lost
	q.copies, q.events, q.lost = make(map[string]struct{}), nil, 0
	return copies, events, lost
}

// open begins to take notice; the channel has a value when there is something.
func (q *Queue) open() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.copies, q.wake = make(map[string]struct{}), make(chan struct{}, 1)
	return q.wake
}

// shut ends that.
func (q *Queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.copies, q.events, q.wake = nil, nil, nil
}

// Active reports whether a Writer looks at the queue.
func (q *Queue) Active() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wake != nil
}

// wakeUp sends a value to a channel with space for one, unless one waits there.
func wakeUp(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Tell notes an event of the metadata.
func (q *Queue) Tell(e meta.Event) {
	switch e.Kind {
	case meta.Created:
		q.happened(CreatedPrefix, e.New.Name)
	case meta.Deleted:
		q.happened(DeletedPrefix, e.Old.Name)
	case meta.Changed: // the security object, a limit: no event
	}
}
