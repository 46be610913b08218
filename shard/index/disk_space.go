package index

import (
	"sync"
	"time"

	"divan/storage"
)

// While the disk has too little space for indexes no update begins: each would map
// documents for nothing. Those that were to run are updated in the background as
// soon as there is space; the engine says when that is.

// lookForSpace is how often the background looks whether there is space again.
const lookForSpace = time.Second

// space is why no update can begin now: the disk has too little space. The index is
// then updated when there is enough.
func (f *follower) space() error {
	err := f.m.o.Engine.IndexSpace()
	if err != nil {
		f.m.noSpace.await(f)
	}
	return err
}

// noSpace are the indexes that are to be updated when the disk has space.
//
// LOCKS mu before that of followers.
type noSpace struct {
	engine     *storage.Engine
	followers  *followers
	background *background

	mu struct {
		sync.Mutex
		waiting map[*follower]struct{} // each has a user for that
	}
}

func newNoSpace(e *storage.Engine, fs *followers, b *background) *noSpace {
	w := &noSpace{engine: e, followers: fs, background: b}
	w.mu.waiting = make(map[*follower]struct{})
	return w
}

// await notes that an index is to be updated when there is space.
func (w *noSpace) await(f *follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, waits := w.mu.waiting[f]; !waits && w.followers.hold(f) {
		w.mu.waiting[f] = struct{}{}
	}
}

// resume has the indexes updated that have waited for space, if there is some now.
func (w *noSpace) resume() {
	w.mu.Lock()
	none := len(w.mu.waiting) == 0
	w.mu.Unlock()
	if none || w.engine.IndexSpace() != nil {
		return
	}
	for _, f := range w.take(func(*follower) bool { return true }) {
		w.background.enqueue(f)
		w.followers.leave(f)
	}
}

// take takes indexes out of those that wait; leave must follow.
func (w *noSpace) take(which func(*follower) bool) (out []*follower) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for f := range w.mu.waiting {
		if which(f) {
			delete(w.mu.waiting, f)
			out = append(out, f)
		}
	}
	return out
}

// giveUp ends the waiting.
func (w *noSpace) giveUp(which func(*follower) bool) {
	for _, f := range w.take(which) {
		w.followers.leave(f)
	}
}
