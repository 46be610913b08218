package search

import (
	"sync"

	"divan/cluster/replica"
	"divan/storage/memory"
)

// held counts the memory of a query: all that the copies of this node have found until it is
// merged, and what was taken from copies of other nodes. A copy that is opened late, after another
// one has answered in its place, may add to it when the query has ended. That counts nothing,
// because the answer of the copy is dropped.
//
// LOCKS: mu is above that of the budget. Copies add side by side.
type held struct {
	mu     sync.Mutex
	bytes  memory.Steps
	closed bool
}

// add counts n more bytes.
func (h *held) add(n int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	return h.bytes.Add(n)
}

// reduce gives back all but n bytes.
func (h *held) reduce(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes.Reduce(n)
}

// end gives back all but n bytes, which are the answer's. It returns how many of them are taken.
func (h *held) end(n int) (taken int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes.Reduce(n)
	h.closed = true
	return h.bytes.Taken()
}

// head is the metadata that a copy sends before its hits.
type head struct {
	replica.SearchHead
	counted bool // its hits are: the copy is of this node, and has them all in memory
}
