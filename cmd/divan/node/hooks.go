package node

import (
	"context"

	"divan/cluster"
	"divan/cluster/designdocs"
	"divan/cluster/indexes"
	"divan/cluster/repair"
	"divan/shard"
	"divan/shard/index"
)

// hooks take the questions and the news of the copies of this node to upper floors. Those are
// built after the copies, and set here before anything runs.
type hooks struct {
	designs *designdocs.Cache
	indexes *index.Manager
	wanted  *indexes.Indexes
	coord   *cluster.Coordinator
	repair  *repair.Repair
}

// rules returns what decides on edits of a copy of this node.
func (h *hooks) rules(ctx context.Context, copyName, db string) (shard.Validate, error) {
	return h.designs.Validator(ctx, copyName, db)
}

// filter finds a function of a design document as a filter of changes.
func (h *hooks) filter(ctx context.Context, f *shard.Filter) (shard.BatchMatcher, error) {
	return h.designs.Filter(ctx, f)
}

// copyDropped is told that a copy of this node was taken away.
func (h *hooks) copyDropped(copyName string) { h.indexes.CopyDropped(copyName) }

// designChanged is told that a copy of this node has a new design document.
func (h *hooks) designChanged(copyName string) { h.designs.Drop(copyName) }

// updated is told that a copy of this node has something new.
func (h *hooks) updated(name string) {
	h.coord.Updated(name)
	h.wanted.Updated(name)
	h.repair.Updated(name)
}

// buildIndexes builds the indexes of a copy that is made.
func (h *hooks) buildIndexes(ctx context.Context, name, copyName string) error {
	return h.wanted.Build(ctx, name, copyName)
}
