package core

import (
	"context"
	"errors"
	"sync"
)

// ErrFeedsEnd ends feeds because the server stops, or is in maintenance mode.
var ErrFeedsEnd = errors.New("the server ends its feeds")

// feedGate knows the feeds that wait for changes, so that they can be ended before the
// server stops and in maintenance mode: clients get a proper end and come back elsewhere.
type feedGate struct {
	mu     sync.Mutex
	ended  bool // for good
	paused bool // maintenance mode
	next   uint64
	open   map[uint64]context.CancelCauseFunc
}

// join returns a context that also ends with ErrFeedsEnd when the gate does;
// the feed calls leave when it is over. When the gate has ended already open is
// false and the context is only the parent's: such a feed must not wait.
func (g *feedGate) join(parent context.Context) (ctx context.Context, leave func(), open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended || g.paused {
		return parent, func() {}, false
	}
	ctx, cancel := context.WithCancelCause(parent)
	if g.open == nil {
		g.open = make(map[uint64]context.CancelCauseFunc)
	}
	g.next++
	id := g.next
	g.open[id] = cancel
	return ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, id)
		cancel(nil)
	}, true
}

// JoinFeeds makes a feed that waits one of those that end with the server, and in
// maintenance mode: see feedGate.join.
func (a *API) JoinFeeds(parent context.Context) (ctx context.Context, leave func(), open bool) {
	return a.feeds.join(parent)
}

// EndFeeds ends all changes feeds, present and future, with their last
// sequence; a feed that is asked for later still answers what there is. It is
// for the moment before the server stops taking requests, and cannot be undone.
func (a *API) EndFeeds() {
	g := &a.feeds
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.endLocked()
}

// pause ends the feeds that wait while maintenance mode is on, and lets no
// other wait until it is off (semantics.md section 8.7).
func (g *feedGate) pause(maintenance bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = maintenance
	if maintenance {
		g.endLocked()
	}
}

func (g *feedGate) endLocked() {
	for _, cancel := range g.open {
		cancel(ErrFeedsEnd)
	}
}

// OpenFeeds returns the number of _changes feeds under way.
func (a *API) OpenFeeds() int {
	a.feeds.mu.Lock()
	defer a.feeds.mu.Unlock()
	return len(a.feeds.open)
}
