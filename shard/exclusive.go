package shard

import (
	"context"

	"divan/storage"
)

// exclusive is a task that fills a batch of its own, without other changes in
// it: the steps of compaction and of Clones.Range.
type exclusive struct {
	fn func(b *storage.Batch) error
	// edits says that it changes what clients read: it takes no room that is kept for
	// what gives room back.
	edits  bool
	design bool // with a design document among the edits
}

func (e *exclusive) cost() (edits, bytes int) { return maxGroupEdits, maxGroupBytes }

func (e *exclusive) stage(g *groupCommit) error {
	g.exclusive = e
	g.design = e.design
	return nil
}

func isExclusive(j *job) bool {
	_, ok := j.task.(*exclusive)
	return ok
}

// write runs fn with a batch of its own on the copy's writer and returns when
// the batch is durable.
func (s *copyStates) write(ctx context.Context, name string, fn func(b *storage.Batch) error) error {
	return s.submit(ctx, name, &exclusive{fn: fn}, false)
}
