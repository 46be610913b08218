package shard

// Watch tells when the durable sequence of a copy has moved.
type Watch struct {
	states *copyStates
	c      chan struct{}
	state  *copyState // this and closed are guarded by copyStates.mu
	closed bool
}

// Watch starts watching a copy. Read the copy after that, not before: then no
// change falls between the two. Close it when done; fault.Closed when the
// Local is closed.
func (l *Local) Watch(name string) (*Watch, error) {
	return l.WatchOn(name, make(chan struct{}, 1))
}

// WatchOn is Watch with a channel that watches of several copies may share. It
// needs space for one value.
func (l *Local) WatchOn(name string, ch chan struct{}) (*Watch, error) {
	return l.states.watch(name, ch)
}

func (s *copyStates) watch(name string, ch chan struct{}) (*Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	// A watch is a user of the copyState, but not of the Local: Close does not
	// wait for it.
	c := s.stateLocked(name)
	c.users++
	w := &Watch{states: s, state: c, c: ch}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.watchers == nil {
		c.mu.watchers = make(map[*Watch]struct{})
	}
	c.mu.watchers[w] = struct{}{}
	return w, nil
}

// C receives one value for any number of movements since the last receive, and
// one when the copy is dropped, has stopped after a failure of the disk (reading
// it says so), or goes on after that.
func (w *Watch) C() <-chan struct{} { return w.c }

// signal is called with the copyState's lock held.
func (w *Watch) signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() {
	s := w.states
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	c := w.state
	c.mu.Lock()
	delete(c.mu.watchers, w)
	c.mu.Unlock()
	c.users--
	s.forgetIdleLocked(c)
}
