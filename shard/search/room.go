package search

import (
	"divan/storage/fault"
)

// roomBytes is how much memory a query may take for its answer, and for what it holds of a
// chunk.
const roomBytes = 64 << 20

// smallBytes is how much of that each query may take, regardless of others.
const smallBytes = 4 << 20

// room counts the memory of a query.
type room struct {
	left  int
	taken int          // for matchers of the chunk at hand
	grow  func() error // waits until there may be all of roomBytes; nil: there may
}

// Has implements postings.Room.
func (r *room) Has(bytes int) bool { return r.left >= bytes }

// Give implements postings.Room.
func (r *room) Give(bytes int) { r.left += bytes }

// Take takes bytes. An error is a *fault.Error: there are not so many; or that of the context.
func (r *room) Take(bytes int) error {
	r.left -= bytes
	if r.left >= 0 {
		return nil
	}
	if r.grow != nil && r.most() >= 0 {
		if err := r.grow(); err != nil {
			return err
		}
		r.left, r.grow = r.most(), nil
		return nil
	}
	return errNoRoom()
}

// most returns how many bytes may be left to the query.
func (r *room) most() int {
	if r.grow == nil {
		return r.left
	}
	return r.left + roomBytes - smallBytes
}

func errNoRoom() error {
	return fault.New(fault.BadRequest, "The query needs too much memory: ask for fewer rows, labels or clauses.")
}

// What is taken for one of each beside its text, in bytes, about.
const (
	hitBytes     = 96
	valueBytes   = 64
	labelBytes   = 96
	storedBytes  = 48
	matcherBytes = 1 << 11
	nodeBytes    = 128
	wordBytes    = 256
)
