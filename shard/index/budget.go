package index

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// budget is the memory that all updates of a node together take for documents that
// were read and for what was made of them.
//
// Nothing waits for it while it holds a JavaScript VM, and what an update needs to
// go on is never refused, so that no two updates wait for each other:
//
//   - documents are read when there is space for them; before an update waits for that,
//     it commits what it has gathered;
//   - Map takes what is there, and gives a document back that does not fit. That
//     document is mapped again when it is the next one of its update to be
//     committed, beyond the budget if need be. One update of the node does that at
//     a time, in the order in which they asked, and gives everything back with
//     its commit.
//
// So the node holds the budget and one document at most. An update takes an even
// share of it, of which one stays free for the next update to begin.
type budget struct {
	size      int64
	space     *semaphore.Weighted // bytes
	overdraft *semaphore.Weighted // one
	updates   atomic.Int64        // that run
	beyond    atomic.Int64        // bytes taken beyond the budget
}

// defaultMemory is the budget of a manager that was told nothing.
const defaultMemory = 256 << 20

// readSpace is how much reading a batch of documents may take: the size that ends
// a batch, and one document.
const readSpace = 9 << 20

// spaceStep is how much memory Map takes at a time.
const spaceStep = 256 << 10

func newBudget(size int64) *budget {
	if size <= 0 {
		size = defaultMemory
	}
	return &budget{size: size, space: semaphore.NewWeighted(size), overdraft: semaphore.NewWeighted(1)}
}

// account is the part of the budget that one update holds. Its methods are safe
// for concurrent use.
type account struct {
	b    *budget
	held atomic.Int64
	last *Space // that goes beyond the budget; used by the goroutines of an update in turn
}

func (b *budget) open() *account {
	b.updates.Add(1)
	return &account{b: b}
}

// close gives back everything that is left; the goroutines of the update have ended.
func (a *account) close() {
	a.last.close()
	a.release(a.held.Load())
	a.b.updates.Add(-1)
}

// read takes space for documents that are going to be read.
func (a *account) read(ctx context.Context) (n int64, err error) {
	n = min(readSpace, a.b.size/2)
	if err := a.b.space.Acquire(ctx, n); err != nil {
		return 0, err
	}
	a.held.Add(n)
	return n, nil
}

// tryRead is read, if there is space.
func (a *account) tryRead() (n int64, ok bool) {
	n = min(readSpace, a.b.size/2)
	if !a.b.space.TryAcquire(n) {
		return 0, false
	}
	a.held.Add(n)
	return n, true
}

// share returns how much an update may take.
func (a *account) share() int64 { return a.b.size / (1 + max(a.b.updates.Load(), 1)) }

// try takes space that is there.
func (a *account) try(n int64) bool {
	if a.held.Add(n) > a.share() || !a.b.space.TryAcquire(n) {
		a.held.Add(-n)
		return false
	}
	return true
}

func (a *account) release(n int64) {
	if n > 0 {
		a.held.Add(-n)
		a.b.space.Release(n)
	}
}

// Space is the memory that Map may take for what it makes of documents. It belongs
// to one goroutine at a time.
type Space struct {
	a      *account
	taken  int64 // of the budget
	used   int64 // of that
	last   bool  // the documents are the next ones to be committed: nothing is refused
	beyond int64 // bytes beyond the budget

	refused bool
}

// Take takes memory for so many bytes. When it is false there is none: what was made
// of the document is dropped, and Map gives back that document and those behind it.
func (r *Space) Take(n int) bool {
	r.used += int64(n)
	for r.used > r.taken+r.beyond {
		step := max(r.used-r.taken-r.beyond, spaceStep)
		switch {
		case r.a.try(step):
			r.taken += step
		case r.last:
			r.beyond += step
			r.a.b.beyond.Add(step)
		default:
			r.refused = true
			return false
		}
	}
	return true
}

// Full reports that what was made so far should be applied before there is more.
func (r *Space) Full() bool { return r.used >= pieceBytes || r.beyond > 0 }

// pieceBytes is how much memory what is applied together takes about, unless one
// document takes more.
const pieceBytes = 2 << 20

// lastSpace waits until this update may go beyond the budget.
func (a *account) lastSpace(ctx context.Context) (*Space, error) {
	if err := a.b.overdraft.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	a.last = &Space{a: a, last: true}
	return a.last, nil
}

// close gives the memory back.
func (r *Space) close() {
	if r == nil {
		return
	}
	r.a.release(r.taken)
	r.a.b.beyond.Add(-r.beyond)
	if r.last {
		r.a.last = nil
		r.a.b.overdraft.Release(1)
	}
	*r = Space{a: r.a}
}
