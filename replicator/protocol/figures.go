package protocol

import (
	"context"
	"sync/atomic"
)

// Figures count what runs do, for the statistics of a node.
type Figures struct {
	FailedStarts                   atomic.Uint64 // runs that found no database, or no checkpoint
	Checkpoints, FailedCheckpoints atomic.Uint64
	FailedChanges                  atomic.Uint64 // feeds of changes that broke off
}

// countIf counts an error, unless it is that the run was told to end.
func countIf(ctx context.Context, n *atomic.Uint64, err error) {
	if err != nil && ctx.Err() == nil {
		n.Add(1)
	}
}
