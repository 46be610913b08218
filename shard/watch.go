package shard

// Watch tells when the durable sequence of a copy has moved.
type Watch struct {
	local   *Local
	replica *replica
	c       chan struct{}
	closed  bool // guarded by Local.mu
}

// Watch starts watching a copy. Read the copy after that, not before: then no
// change falls between the two. Close it when done; fault.Closed when the
// Local is closed.
func (l *Local) Watch(name string) (*Watch, error) {
	return l.WatchOn(name, make(chan struct{}, 1))
}

// WatchOn is Watch with a channel that watches of several copies may share. It
// needs room for one value.
func (l *Local) WatchOn(name string, c chan struct{}) (*Watch, error) {
	r, err := l.enter(name)
	if err != nil {
		return nil, err
	}
	// A watch is a user of the replica, but not of the Local: Close does not
	// wait for it.
	l.wg.Done()
	w := &Watch{local: l, replica: r, c: c}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.watchers == nil {
		r.mu.watchers = make(map[*Watch]struct{})
	}
	r.mu.watchers[w] = struct{}{}
	return w, nil
}

// C receives one value for any number of movements since the last receive,
// and one when the copy is dropped.
func (w *Watch) C() <-chan struct{} { return w.c }

// signal is called with the replica's lock held.
func (w *Watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() {
	l, r := w.local, w.replica
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	r.mu.Lock()
	delete(r.mu.watchers, w)
	r.mu.Unlock()
	r.users--
	l.forgetLocked(r)
}
