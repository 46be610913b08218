package meta

import (
	"context"
	"errors"
	"sync"
)

// EventKind says what happened to a database.
type EventKind uint8

// The kinds of events.
const (
	Created EventKind = 1
	Deleted EventKind = 2
	Changed EventKind = 3 // security object, a limit, or which nodes have copies
)

// Event is one change of one database.
type Event struct {
	Kind  EventKind
	Old   *Database // nil for Created
	New   *Database // nil for Deleted
	Index uint64    // of the command in the log; grows from event to event
}

// ErrLagged is the error of Subscription.Next after events were lost, because the subscriber was
// too slow or this node caught up from a snapshot: the subscriber has to start over from Databases.
var ErrLagged = errors.New("events of the metadata were lost")

// maxPending bounds the events that wait for one subscriber.
const maxPending = 1 << 16

// Subscription receives the changes of databases in their order.
type Subscription struct {
	all    *subscribers
	wake   chan struct{} // has one token when there is something to see
	mu     sync.Mutex
	events []Event
	lagged bool
	closed bool
}

// subscribers is the set of subscriptions. The machine publishes, any goroutine may join or leave.
type subscribers struct {
	mu     sync.Mutex
	list   map[*Subscription]struct{}
	closed bool
}

func (m *stateMachine) subscribe() (*Subscription, Databases) {
	s := &Subscription{all: &m.subs, wake: make(chan struct{}, 1)}
	m.subs.mu.Lock()
	defer m.subs.mu.Unlock()
	s.closed = m.subs.closed
	if m.subs.list == nil {
		m.subs.list = map[*Subscription]struct{}{}
	}
	m.subs.list[s] = struct{}{}
	// A state is published before its events, so a state read here may hold
	// changes whose events are still to come: events carry whole databases and
	// their order, so seeing one twice does no harm.
	return s, m.load().dbs
}

// Next waits for events and returns all there are. Its errors are ErrLagged,
// that of ctx, and fault.Closed at the end.
func (s *Subscription) Next(ctx context.Context) ([]Event, error) {
	for {
		if events, err := s.take(); events != nil || err != nil {
			return events, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Subscription) take() ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	switch {
	case s.lagged:
		s.lagged = false
		return nil, ErrLagged
	case events == nil && s.closed:
		return nil, errStopping()
	}
	return events, nil
}

// Close ends the subscription; a Next that waits returns fault.Closed.
func (s *Subscription) Close() {
	s.all.mu.Lock()
	delete(s.all.list, s)
	s.all.mu.Unlock()
	s.change(func() { s.closed = true })
}

func (s *Subscription) change(fn func()) {
	s.mu.Lock()
	fn()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscribers) each(fn func(*Subscription)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.list {
		sub.change(func() { fn(sub) })
	}
}

func (s *subscribers) publish(events []Event) {
	if len(events) == 0 {
		return
	}
	s.each(func(sub *Subscription) {
		if len(sub.events)+len(events) > maxPending {
			sub.events, sub.lagged = nil, true
			return
		}
		sub.events = append(sub.events, events...)
	})
}

func (s *subscribers) lag() {
	s.each(func(sub *Subscription) { sub.events, sub.lagged = nil, true })
}

func (s *subscribers) close() {
	s.each(func(sub *Subscription) { sub.closed = true })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
