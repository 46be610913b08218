package memory

import (
	"context"
	"errors"
	"sync"
	"time"
)

// division is how a part of a budget is divided among owners.
type division struct {
	percent int64 // of the budget that all owners may have together
	// weight is how many times what is left to all others an owner may hold (dynamic
	// thresholds after Choudhury and Hahne): alone weight of weight+1 parts. An owner that
	// comes later always finds something, no matter how much the others hold and for how
	// long.
	weight int64
}

// Name tells the owners of shares apart: an account, or an address of clients without one.
type Name struct{ Account, Address string }

// Shares divide a budget among owners. It is safe for concurrent use.
//
// LOCKS mu is above that of the budget.
type Shares struct {
	budget *Budget
	of     division
	mu     struct {
		sync.Mutex
		used   int64
		owners map[Name]int64 // what each holds; no entry: nothing
	}
}

// ForReplications returns shares that leave half of a budget to others: alone, an owner has a half
// of the rest, two of them a third each, and so on.
func ForReplications(b *Budget) *Shares { return newShares(b, division{percent: 50, weight: 1}) }

// ForRequests returns shares of all of a budget. An owner has 60 percent of it with large holds when
// it is alone, and 80 with small ones; one that comes then has as much of the rest.
func ForRequests(b *Budget) *Shares { return newShares(b, division{percent: 100, weight: 4}) }

func newShares(b *Budget, of division) *Shares {
	s := &Shares{budget: b, of: of}
	s.mu.owners = map[Name]int64{}
	return s
}

// most returns how many bytes all owners may have.
func (s *Shares) most() int64 { return s.budget.limit() / 100 * s.of.percent }

// take takes size bytes for one Hold of an owner, which has held bytes already. never:
// there cannot be so much, even if all others give back theirs.
func (s *Shares) take(owner Name, held, size int64) (ok, never bool) {
	most := s.most()
	if (s.of.weight+1)*(held+size) > s.of.weight*min(most, s.budget.most(held+size)) {
		return false, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	has := s.mu.owners[owner] + size
	if has > s.of.weight*(min(most-s.mu.used, s.budget.free(held, size))-size) {
		return false, false
	}
	if ok = s.budget.take(held, size); ok {
		s.mu.owners[owner] = has
		s.mu.used += size
	}
	return ok, false
}

// give takes size bytes back of something of an owner that has held bytes.
func (s *Shares) give(owner Name, held, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.budget.give(held, size)
	s.mu.used -= size
	if s.mu.owners[owner] -= size; s.mu.owners[owner] == 0 {
		delete(s.mu.owners, owner)
	}
}

// Hold returns a hold of an owner, which holds nothing.
func (s *Shares) Hold(of Name) Hold { return Hold{shares: s, owner: of} }

// Owner is an account that has a share. It is safe for concurrent use; nil takes what it likes.
type Owner struct {
	shares *Shares
	name   string
}

// Owner returns the account of that name.
func (s *Shares) Owner(name string) *Owner {
	if s == nil {
		return nil
	}
	return &Owner{s, name}
}

// Hold returns one that holds nothing.
func (o *Owner) Hold() Hold {
	if o == nil {
		return Hold{}
	}
	return o.shares.Hold(Name{Account: o.name})
}

// The errors of Take.
var (
	ErrFull  = errors.New("there is no memory left at the moment")
	ErrNever = errors.New("there can never be so much memory")
)

// Hold is the memory that an owner holds for one thing, such as a request or an answer that
// is read. It belongs to one goroutine at a time. The zero Hold takes what it likes.
type Hold struct {
	shares *Shares
	owner  Name
	held   int64
}

// Held returns how many bytes it has.
func (h *Hold) Held() int64 { return h.held }

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
	if h.shares == nil || size <= 0 {
		return nil
	}
	for wait, waited := firstWait, time.Duration(0); ; wait = min(2*wait, longestWait) {
		ok, never := h.Try(size)
		switch {
		case ok:
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

// Try is Take for a taker that does not wait. never: there cannot be so much, even if all
// others give back theirs.
func (h *Hold) Try(size int64) (ok, never bool) {
	if h.shares == nil || size <= 0 {
		return true, false
	}
	if ok, never = h.shares.take(h.owner, h.held, size); ok {
		h.held += size
	}
	return ok, never
}

// Shrink gives back what is held beyond size bytes.
func (h *Hold) Shrink(size int64) {
	size = max(size, 0)
	if more := h.held - size; h.shares != nil && more > 0 {
		h.shares.give(h.owner, h.held, more)
		h.held = size
	}
}

// Release gives everything back.
func (h *Hold) Release() { h.Shrink(0) }
