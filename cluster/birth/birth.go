// Package birth remembers the creations of databases that are under way on this
// node, and the databases of others whose copies are waited for.
package birth

import (
	"maps"
	"sync"
	"time"
)

// birth is a database that this node creates. A copy that it makes of it
// meanwhile is new and holds all there is: every other node makes only copies
// that have to be filled, so nobody can have written to a range before this
// node has made the first complete copy of it, or before its holders have found
// out, all of them, that none of them has anything.
type birth struct {
	name  string
	until time.Time // of one in doubt: how long it is counted on; zero: a request creates it
}

// over reports whether a birth is not counted on any more.
func (b birth) over(now time.Time) bool { return !b.until.IsZero() && !now.Before(b.until) }

// DoubtTime is how long a creation may turn out to have succeeded after nobody
// could tell what came of it: longer than it takes to elect a leader, and to
// catch up with it.
const DoubtTime = time.Minute

// MaxSought bounds the databases whose copies are waited for.
const MaxSought = 4096

// Register is the creations of a node. It is safe for concurrent use.
type Register struct {
	mu     sync.RWMutex
	births map[[16]byte]birth // by id
	// sought is since when copies of databases that others create have been
	// waited for, by id.
	sought map[[16]byte]time.Time
}

// NewRegister returns an empty register.
func NewRegister() *Register {
	return &Register{births: make(map[[16]byte]birth), sought: make(map[[16]byte]time.Time)}
}

// Len returns how many creations are counted on.
func (h *Register) Len() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.births)
}

// Expect notes that this node is creating the database with that id, until
// forget is called: copies that it makes of it meanwhile are new.
func (h *Register) Expect(id [16]byte) (forget func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expectLocked(id)
}

func (h *Register) expectLocked(id [16]byte) (forget func()) {
	h.births[id] = birth{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.births, id)
	}
}

// Expected reports whether this node is creating the database with that id.
func (h *Register) Expected(id [16]byte) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	b, ok := h.births[id]
	return ok && !b.over(time.Now())
}

// Doubt notes that the creation of a database was proposed and nobody knows what
// came of it. It is expected for a while without a request.
func (h *Register) Doubt(id [16]byte, name string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetDoubtsLocked(now)
	h.births[id] = birth{name: name, until: now.Add(DoubtTime)}
}

func (h *Register) forgetDoubtsLocked(now time.Time) {
	maps.DeleteFunc(h.births, func(_ [16]byte, b birth) bool { return b.over(now) })
}

// Doubts returns the creations in doubt, and forgets those that are over.
func (h *Register) Doubts() map[[16]byte]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgetDoubtsLocked(time.Now())
	out := make(map[[16]byte]string)
	for id, b := range h.births {
		if !b.until.IsZero() {
			out[id] = b.name
		}
	}
	return out
}

// Settle ends the doubt about a creation that has turned out to have succeeded.
// Only the first one who asks is told so; the database is then expected until
// it calls forget.
func (h *Register) Settle(id [16]byte) (forget func(), ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.births[id]
	if !ok || b.until.IsZero() || b.over(time.Now()) {
		return nil, false
	}
	return h.expectLocked(id), true
}

// Sought returns since when copies of a database have been waited for.
func (h *Register) Sought(id [16]byte) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, ok := h.sought[id]; ok {
		return at
	}
	if len(h.sought) >= MaxSought {
		for other := range h.sought { // whichever: it will be waited for once more
			delete(h.sought, other)
			break
		}
	}
	now := time.Now()
	h.sought[id] = now
	return now
}

// LenSought returns how many databases are waited for.
func (h *Register) LenSought() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.sought)
}
