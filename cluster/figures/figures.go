// Package figures counts what becomes of documents in a cluster, for the statistics
// of a node.
package figures

import (
	"sync/atomic"

	"divan/shard"
)

// Figures are numbers since the start of the node.
type Figures struct {
	ReadRepairs       uint64 // documents that copies were brought in line about, as a read had seen that they differ
	FailedReadRepairs uint64 // of those, where some copy was not there for it
	UpdateErrors      uint64 // edits of which it is not known that any copy has them
	QuorumErrors      uint64 // edits that fewer copies have than were asked for
}

// Counters count them. The zero value is ready; it is safe for concurrent use.
type Counters struct{ repairs, failedRepairs, updateErrors, quorumErrors atomic.Uint64 }

// Repaired counts a read repair.
func (c *Counters) Repaired(err error) {
	c.repairs.Add(1)
	if err != nil {
		c.failedRepairs.Add(1)
	}
}

// Updated counts what became of edits; err is that of all of them when there are no
// results. refusal reports whether an error says that an edit has left no trace.
func (c *Counters) Updated(edits int, results []shard.EditResult, err error, refusal func(error) bool) {
	if err != nil && results == nil {
		if !refusal(err) {
			c.updateErrors.Add(uint64(edits))
		}
		return
	}
	for i := range results {
		switch r := &results[i]; {
		case r.Accepted:
			c.quorumErrors.Add(1)
		case r.Err != nil && !refusal(r.Err):
			c.updateErrors.Add(1)
		}
	}
}

// Now returns the numbers.
func (c *Counters) Now() Figures {
	failed := c.failedRepairs.Load() // first, as they are counted last: there are never more of them than of all
	return Figures{
		ReadRepairs: c.repairs.Load(), FailedReadRepairs: failed,
		UpdateErrors: c.updateErrors.Load(), QuorumErrors: c.quorumErrors.Load(),
	}
}
