package shard

import (
	"context"

	"divan/storage"
)

// exclusive is a task that fills a batch of its own, without other changes in
// it: the steps of compaction.
type exclusive struct {
	fn func(b *storage.Batch) error
}

func (e *exclusive) cost() (edits, bytes int) { return maxGroupEdits, maxGroupBytes }

func (e *exclusive) stage(g *groupCommit) error {
	g.exclusive = e.fn
	return nil
}

func isExclusive(j *job) bool {
	_, ok := j.task.(*exclusive)
	return ok
}

// write runs fn with a batch of its own on the copy's writer and returns when
// the batch is durable.
func (l *Local) write(ctx context.Context, name string, fn func(b *storage.Batch) error) error {
	return l.submit(ctx, name, &exclusive{fn: fn}, false)
}
