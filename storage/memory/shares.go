package memory

import (
	"context"
	"errors"
	"sync"
	"time"
)

// sharesPercent is how much of a budget owners may have together: what is left is for
// those that have no owner, as requests.
const sharesPercent = 50

// Shares divide half of a budget among owners. An owner may hold as much as is left to
// all others (dynamic thresholds after Choudhury and Hahne): alone a half, two of them a
// third each, and so on. So one that comes later always finds something, whatever the
// others hold and for how long. It is safe for concurrent use.
type Shares struct {
	budget *Budget
	mu     struct {
		sync.Mutex
		used   int64
		owners map[string]int64 // what each holds; no entry: nothing
	}
}

// NewShares returns shares of a budget that nobody has yet.
func NewShares(b *Budget) *Shares {
	s := &Shares{budget: b}
	s.mu.owners = map[string]int64{}
	return s
}

// take takes size bytes for something of an owner that has held bytes already.
func (s *Shares) take(owner string, held, size int64) (ok, never bool) {
	most := s.budget.limit() / 100 * sharesPercent
	if 2*(held+size) > most {
		return false, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.mu.owners[owner] + size
	if has > most-s.mu.used-size {
		return false, false
	}
	if ok, never = s.budget.take(held, size); ok {
		s.mu.owners[owner] = has
		s.mu.used += size
	}
	return ok, never
}

// give takes bytes of an owner back.
func (s *Shares) give(owner string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.give(size)
	s.mu.used -= size
	if s.mu.owners[owner] -= size; s.mu.owners[owner] == 0 {
		delete(s.mu.owners, owner)
	}
}

// Owner is one that has a share. It is safe for concurrent use; nil takes what it likes.
type Owner struct {
	shares *Shares
	name   string
}

// Owner returns the owner of that name.
func (s *Shares) Owner(name string) *Owner {
	if s == nil {
		return nil
	}
	return &Owner{s, name}
}

// The errors of Take.
var (
	ErrFull  = errors.New("there is no memory left at the moment")
	ErrNever = errors.New("there can never be so much memory")
)

// Hold is what an owner holds for one thing, such as an answer that is read. It belongs
// to one goroutine at a time.
type Hold struct {
	owner *Owner
	held  int64
}

// Hold returns one that holds nothing.
func (o *Owner) Hold() Hold { return Hold{owner: o} }

// How long Take waits for memory: at first firstWait, then twice as long each time up to
// longestWait, patience in all. What waits holds memory itself, so it does not wait
// for ever.
const (
	firstWait   = 20 * time.Millisecond
	longestWait = time.Second
	patience    = 10 * time.Second
)

// Take takes size more bytes, and waits for a while when there are none. The error is
// ErrFull, ErrNever or that of ctx.
func (h *Hold) Take(ctx context.Context, size int64) error {
	if h.owner == nil || size <= 0 {
		return nil
	}
	for wait, waited := firstWait, time.Duration(0); ; wait = min(2*wait, longestWait) {
		ok, never := h.owner.shares.take(h.owner.name, h.held, size)
		switch {
		case ok:
			h.held += size
			return nil
		case never:
			return ErrNever
		case waited >= patience:
			return ErrFull
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			waited += wait
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// Try is Take for a taker that can do without, and does not wait.
func (h *Hold) Try(size int64) bool {
	if h.owner == nil || size <= 0 {
		return true
	}
	ok, _ := h.owner.shares.take(h.owner.name, h.held, size)
	if ok {
		h.held += size
	}
	return ok
}

// Shrink gives back what is held beyond size bytes.
func (h *Hold) Shrink(size int64) {
	if more := h.held - size; h.owner != nil && more > 0 {
		h.owner.shares.give(h.owner.name, more)
		h.held = size
	}
}

// Release gives everything back.
func (h *Hold) Release() { h.Shrink(0) }
