package storage

import "sync"

// A store whose directory is there may have lost what it held: the instance of the small stores is gone or
// cannot be opened, a block of it was damaged, or a log of its own is gone. Such a store is lost as
// one without a directory is, until it can be opened again: other copies fill it, or an operator
// accepts the loss. Nothing of it is removed; its directory is set aside when another one takes its place.

// lostContents is the stores that have lost what they held. It is safe for concurrent use.
type lostContents struct {
	mu    sync.Mutex
	names map[string]struct{}
	news  chan struct{} // space for one
}

func newLostContents() *lostContents {
	return &lostContents{names: make(map[string]struct{}), news: make(chan struct{}, 1)}
}

// note notes a store and reports whether that is news.
func (l *lostContents) note(name string) bool {
	l.mu.Lock()
	_, known := l.names[name]
	l.names[name] = struct{}{}
	l.mu.Unlock()
	if !known {
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
	return !known
}

func (l *lostContents) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
}

func (l *lostContents) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.names[name]
	return ok
}
