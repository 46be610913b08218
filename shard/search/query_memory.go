package search

import (
	"divan/storage/fault"
)

// spaceBytes is how much memory a query may take for its answer, and for what it holds of a
// chunk.
const spaceBytes = 64 << 20

// smallBytes is how much of that each query may take, regardless of others.
const smallBytes = 4 << 20

// space counts the memory of a query.
type space struct {
	left  int
	taken int          // for matchers of the chunk at hand
	grow  func() error // waits until there may be all of spaceBytes; nil: there may
}

// Has implements postings.Space.
func (r *space) Has(bytes int) bool { return r.left >= bytes }

// Give implements postings.Space.
func (r *space) Give(bytes int) { r.left += bytes }

// Take takes bytes. An error is a *fault.Error: there are not so many; or that of the context.
func (r *space) Take(bytes int) error {
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
	return errNoSpace()
}

// most returns how many bytes may be left to the query.
func (r *space) most() int {
	if r.grow == nil {
		return r.left
	}
	return r.left + spaceBytes - smallBytes
}

func errNoSpace() error {
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
