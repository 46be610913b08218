package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"
)

// pulse sends heartbeats into a feed, whatever the feed is busy with: waiting
// for changes, or reading past thousands that its filter does not pass. It is
// the one thing in this package that runs beside the request's goroutine, and
// stop waits for it.
type pulse struct {
	out    *streamWriter
	text   string
	mu     sync.Mutex // held while either side writes to out
	err    error      // what ended it, guarded by mu
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start starts the heartbeats. The context it returns ends with ctx, with
// stop, and when a heartbeat cannot be delivered.
func (b *pulse) start(ctx context.Context, every time.Duration) context.Context {
	ctx, b.cancel = context.WithCancel(ctx)
	b.done.Go(func() { b.run(ctx, every) })
	return ctx
}

// run sends a heartbeat at every tick until ctx ends or the client is gone.
// It also brings rows to the client that wait for the buffer to fill.
func (b *pulse) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if !b.beat() {
				b.cancel()
				return
			}
		}
	}
}

func (b *pulse) beat() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && b.out.err == nil {
		b.out.buf = append(b.out.buf, b.text...)
		b.err = b.out.Flush()
	}
	return b.err == nil
}

// failed returns the error that ended the heartbeats, nil while they go on.
func (b *pulse) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// stop ends the heartbeats and waits for the last one. It may be called twice.
func (b *pulse) stop() {
	b.cancel()
	b.done.Wait()
}

// errFeedsEnd ends feeds because the server stops.
var errFeedsEnd = errors.New("the server ends its feeds")

// feedGate knows the feeds that are open, so that they can be ended before the
// server stops: clients get a proper end and come back elsewhere.
type feedGate struct {
	mu    sync.Mutex
	ended bool
	next  uint64
	open  map[uint64]context.CancelCauseFunc
}

// join returns a context that also ends with errFeedsEnd when the gate does;
// the feed calls leave when it is over. When the gate has ended already open is
// false and the context is only the parent's: such a feed must not wait.
func (g *feedGate) join(parent context.Context) (ctx context.Context, leave func(), open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
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

// EndFeeds ends all changes feeds, present and future, with their last
// sequence; a feed that is asked for later still answers what there is. It is
// for the moment before the server stops taking requests, and cannot be undone.
func (a *API) EndFeeds() {
	g := &a.feeds
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, cancel := range g.open {
		cancel(errFeedsEnd)
	}
}
