package lost

import "sync"

// Missing is the copies of this node that are gone and have to join, by name, with the ids
// that they had. It is safe for concurrent use.
type Missing struct {
	mu     sync.Mutex
	byName map[string]uint64
	wake   chan struct{} // space for one
}

// NewMissing returns one without copies.
func NewMissing() *Missing {
	return &Missing{byName: make(map[string]uint64), wake: make(chan struct{}, 1)}
}

// Note notes that a copy has to join.
func (m *Missing) Note(name string, id uint64) {
	m.mu.Lock()
	m.byName[name] = id
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Take returns what was noted, and forgets it.
func (m *Missing) Take() map[string]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.byName
	m.byName = make(map[string]uint64)
	return all
}

// Wake has something when copies were noted.
func (m *Missing) Wake() <-chan struct{} { return m.wake }
