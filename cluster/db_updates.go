package cluster

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"divan/cluster/meta"
	"divan/shard/ring"
)

// This file notices what happens to databases; db_updates_write.go writes it
// to the database that _db_updates reads. Nobody who writes documents ever
// waits for that: what is noticed is a set of bounded size, and when it is full
// the rest is lost. CouchDB promises no more (api.md section 4.3).

// GlobalChanges is the database of what happened to databases: one document
// for each database and kind of event, whose latest revision stands for the
// latest event.
const GlobalChanges = "_global_changes"

// shardsOf returns how many shards a new database gets that nobody asked a
// number for. That of the events gets one, so that they are read in the order
// they were written in.
func shardsOf(name string, usual int) int {
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

// maxNews bounds what waits to be written.
const maxNews = 1 << 16

// news is what was noticed and not looked at yet.
//
// LOCKS: mu guards the fields only.
type news struct {
	mu     sync.Mutex
	copies map[string]struct{} // copies that have moved on, by name
	events []string            // ids of documents for databases made or deleted, in order
	lost   int                 // what there was no room for
	wake   chan struct{}       // has room for one; nil while nobody writes
}

// Updated tells that a copy of this node has something new that is durable. It
// returns at once: it is called for every write.
func (c *Coordinator) Updated(copyName string) {
	if ofGlobalChanges(copyName) {
		return // or each event would be the next one
	}
	n := &c.news
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.copies[copyName]; known || n.wake == nil {
		return
	}
	if len(n.copies) >= maxNews {
		n.lost++
		return
	}
	n.copies[copyName] = struct{}{}
	wakeUp(n.wake)
}

// ofGlobalChanges reports whether a copy belongs to that database, without
// taking its name apart.
func ofGlobalChanges(copyName string) bool {
	const before = len("shards/00000000-7fffffff/")
	return len(copyName) > before && strings.HasPrefix(copyName[before:], GlobalChanges+".")
}

// happened notes that a database was made or deleted.
func (c *Coordinator) happened(prefix, db string) {
	if db == GlobalChanges {
		return
	}
	n := &c.news
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.wake == nil:
	case len(n.events) >= maxNews:
		n.lost++
	default:
		n.events = append(n.events, prefix+db)
		wakeUp(n.wake)
	}
}

// take returns what was noticed, and forgets it.
func (n *news) take() (copies map[string]struct{}, events []string, lost int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	copies, events, lost = n.copies, n.events, n.lost
	n.copies, n.events, n.lost = make(map[string]struct{}), nil, 0
	return copies, events, lost
}

// open begins to take notice; the channel has a value when there is something.
func (n *news) open() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.copies, n.wake = make(map[string]struct{}), make(chan struct{}, 1)
	return n.wake
}

// shut ends that.
func (n *news) shut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.copies, n.events, n.wake = nil, nil, nil
}

// wakeUp sends a value to a channel with room for one, unless one waits there.
func wakeUp(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// announce writes what happens to databases until stop is called, which waits
// for it.
func (c *Coordinator) announce(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var writing sync.WaitGroup
	wake := c.news.open()
	writing.Go(func() {
		w := &announcer{c: c, agenda: newAgenda()}
		w.run(ctx, wake)
	})
	return func() {
		cancel()
		writing.Wait()
		c.news.shut()
	}
}

// announcer is the state of the writer.
type announcer struct {
	c      *Coordinator
	agenda *agenda
}

func (w *announcer) run(ctx context.Context, wake <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if due, ok := w.agenda.next(); ok {
			timer.Reset(time.Until(due))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
			w.notice(time.Now())
		case <-timer.C:
			w.flush(ctx)
		}
	}
}

// notice moves to the agenda what is this node's to write.
func (w *announcer) notice(now time.Time) {
	copies, events, lost := w.c.news.take()
	set := w.c.config.Load().GlobalChanges
	target, there := w.c.meta.Database(GlobalChanges)
	if !there || !set.UpdateDB {
		w.agenda.clear()
		return
	}
	if lost > 0 {
		w.c.log.Warn("too much happens to databases, some of it is not told", zap.Int("events", lost))
	}
	w.agenda.delays(set.MaxEventDelay, set.MaxWriteDelay)
	for _, id := range events {
		if w.c.isFirst(target.Shard(id).Nodes) {
			w.agenda.urgent(id, now)
		}
	}
	for name := range copies {
		if db, ok := w.mine(name); ok {
			w.agenda.update(UpdatedPrefix+db, now)
		}
	}
}

// mine returns the database of a copy when this node is to tell of its
// updates: the first one that can be reached of those that hold the range.
func (w *announcer) mine(copyName string) (name string, ok bool) {
	r, name, suffix, ok := ring.ParseCopyName(copyName)
	if !ok {
		return "", false
	}
	db, ok := w.c.meta.Database(name)
	if !ok || db.Suffix != suffix {
		return "", false
	}
	for _, s := range db.Shards {
		if s.Range == r {
			return name, w.c.isFirst(s.Nodes)
		}
	}
	return "", false
}

// isFirst reports whether this node is the first of those that can be reached.
func (c *Coordinator) isFirst(nodes []string) bool {
	for _, node := range nodes {
		if node == c.node {
			return true
		}
		if c.replica(node) != nil {
			return false
		}
	}
	return false
}

// tell notes an event of the metadata.
func (c *Coordinator) tell(e meta.Event) {
	switch e.Kind {
	case meta.Created:
		c.happened(CreatedPrefix, e.New.Name)
	case meta.Deleted:
		c.happened(DeletedPrefix, e.Old.Name)
	case meta.Changed: // the security object, a limit: no event
	}
}
