package search

import (
	"divan/storage/fault"
)

// roomBytes is how much memory a query may take for its answer, and for what it holds of a
// chunk.
const roomBytes = 64 << 20

// room counts the memory of a query.
type room struct{ left int }

// take takes bytes. An error is a *fault.Error: there are not so many.
func (r *room) take(bytes int) error {
	if r.left -= bytes; r.left < 0 {
		return errNoRoom()
	}
	return nil
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
)
