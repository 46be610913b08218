package index

import (
	"sync"
	"time"
)

// idleFollower is how long a follower that is not in use is kept.
const idleFollower = 5 * time.Minute

// followers are those of a node: the ones in use, and for a while those that were. They close
// what their specs opened when they are forgotten.
type followers struct {
	work sync.WaitGroup // updates and compactions: none starts when closed is set

	mu struct {
		sync.Mutex
		closed bool
		byKey  map[string]*follower // see followerKey
	}
}

func newFollowers() *followers {
	t := &followers{}
	t.mu.byKey = make(map[string]*follower)
	return t
}

// followerKey is the key of the follower of an index.
func followerKey(copyName string, name Name) string { return copyName + "\x00" + name.String() }

// known returns a follower, with one user more; nil: there is none.
func (t *followers) known(key string) (*follower, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return nil, errClosed()
	}
	f := t.mu.byKey[key]
	if f != nil {
		f.users++
	}
	return f, nil
}

// add adds a follower, or closes its kind when there is one meanwhile, and returns the one
// that there is with one user more.
func (t *followers) add(key string, f *follower) (*follower, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	other := t.mu.byKey[key]
	switch {
	case t.mu.closed:
		f.kind.Close()
		return nil, errClosed()
	case other != nil:
		f.kind.Close()
		f = other
	default:
		t.mu.byKey[key] = f
	}
	f.users++
	return f, nil
}

// hold adds a user to a follower that has one. It is false when the node is shutting down.
func (t *followers) hold(f *follower) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return false
	}
	f.users++
	return true
}

// leave takes back a user of a follower.
func (t *followers) leave(f *follower) {
	t.mu.Lock()
	f.users--
	last := f.users == 0
	if last {
		f.unused = time.Now()
	}
	gone := last && f.gone
	t.mu.Unlock()
	if gone {
		t.forget(func(other *follower) bool { return other == f })
	}
}

// start runs work, which stop waits for. It is false when the node is shutting down.
func (t *followers) start(work func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.closed {
		return false
	}
	t.work.Go(work)
	return true
}

// stop ends all work, and waits for it. No more begins.
func (t *followers) stop() {
	t.mu.Lock()
	t.mu.closed = true
	for _, f := range t.mu.byKey {
		f.cancelWork()
	}
	t.mu.Unlock()
	t.work.Wait()
}

// cancelWork stops the work of one follower, and returns what is closed when that has let go
// of its index.
func (t *followers) cancelWork(key string) []<-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.mu.byKey[key]; f != nil {
		return f.cancelWork()
	}
	return nil
}

// copyDropped stops the work of the followers of a copy, which are forgotten as soon as they
// are not in use.
func (t *followers) copyDropped(copyName string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.mu.byKey {
		if f.copyName == copyName {
			f.gone = true
			f.cancelWork()
		}
	}
}

func (t *followers) forgetIdle() {
	t.forget(func(f *follower) bool { return time.Since(f.unused) > idleFollower })
}

// forget forgets followers that are not in use.
func (t *followers) forget(which func(f *follower) bool) {
	for _, f := range t.takeUnused(which) {
		f.kind.Close()
	}
}

// takeUnused removes followers that are not in use.
func (t *followers) takeUnused(which func(f *follower) bool) (out []*follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, f := range t.mu.byKey {
		if f.users == 0 && which(f) {
			delete(t.mu.byKey, key)
			out = append(out, f)
		}
	}
	return out
}

// tasks lists the updates that are under way and those that wait.
func (t *followers) tasks() (out []Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.mu.byKey {
		if t, ok := f.task(); ok {
			out = append(out, t)
		}
	}
	return out
}
