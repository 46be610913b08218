package index

import "time"

// While the disk has too little room for indexes no update begins: each would map
// documents for nothing. Those that were to run are updated in the background as
// soon as there is room; the engine says when that is.

// lookForRoom is how often the background looks whether there is room again.
const lookForRoom = time.Second

// room is why no update can begin now: the disk has too little room. The index is
// then updated when there is enough.
func (f *follower) room() error {
	err := f.m.o.Engine.IndexRoom()
	if err != nil {
		f.m.awaitRoom(f)
	}
	return err
}

// awaitRoom notes that an index is to be updated when there is room.
func (m *Manager) awaitRoom(f *follower) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return
	}
	if _, waits := m.mu.noRoom[f]; !waits {
		m.mu.noRoom[f] = struct{}{}
		f.users++
	}
}

// resume updates the indexes that have waited for room, if there is some now.
func (m *Manager) resume() {
	m.mu.Lock()
	none := len(m.mu.noRoom) == 0
	m.mu.Unlock()
	if none || m.o.Engine.IndexRoom() != nil {
		return
	}
	for _, f := range m.takeWaiting(func(*follower) bool { return true }) {
		m.enqueue(f)
		m.leave(f)
	}
}

// takeWaiting takes indexes out of those that wait for room; leave must follow.
func (m *Manager) takeWaiting(which func(*follower) bool) (out []*follower) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for f := range m.mu.noRoom {
		if which(f) {
			delete(m.mu.noRoom, f)
			out = append(out, f)
		}
	}
	return out
}

// giveUpWaiting ends the waiting for room.
func (m *Manager) giveUpWaiting(which func(*follower) bool) {
	for _, f := range m.takeWaiting(which) {
		m.leave(f)
	}
}
