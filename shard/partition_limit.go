package shard

import (
	"fmt"
	"strings"

	"divan/storage"
	"divan/storage/doc"
)

// fullPartitions returns those partitions among the edits' that are at their
// limit; nil when there are none. Sizes are those before the request: one
// request may exceed the limit, the next one will not.
func fullPartitions(store *storage.Store, req *DecideRequest) (map[string]bool, error) {
	if !req.Limits.Partitioned || req.Limits.MaxPartitionSize <= 0 || !req.NewEdits {
		return nil, nil
	}
	snap, err := store.Snapshot()
	if err != nil {
		return nil, fmt.Errorf("partition sizes of %s: %w", req.Copy, err)
	}
	defer func() { _ = snap.Close() }()
	seen := make(map[string]bool)
	var full map[string]bool
	for i := range req.Edits {
		name, ok := partitionOf(req.Edits[i].ID)
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		sums, err := snap.Sums(partitionBounds(name))
		if err != nil {
			return nil, fmt.Errorf("size of partition %q of %s: %w", name, req.Copy, err)
		}
		if sums.External >= req.Limits.MaxPartitionSize {
			if full == nil {
				full = make(map[string]bool)
			}
			full[name] = true
		}
	}
	return full, nil
}

// overflows reports whether a revision would let a partition grow that is at its
// limit: one that is no larger than the leaf whose place it takes passes, and so do
// replicated edits and design documents (semantics.md section 17).
func (t *decideTask) overflows(s *docState, parent doc.Rev, next *doc.Revision) bool {
	if t.full == nil || !t.req.NewEdits {
		return false
	}
	name, ok := partitionOf(s.id)
	if !ok || !t.full[name] {
		return false
	}
	before, _, _ := s.tree.Find(parent) // none of a new document
	external, _ := sizesOf(next)
	return external > before.External
}

// partitionOf returns the partition of a document in a partitioned database;
// false for design documents, which have none.
func partitionOf(id string) (string, bool) {
	if strings.HasPrefix(id, "_") {
		return "", false
	}
	name, _, ok := strings.Cut(id, ":")
	return name, ok
}

// partitionBounds returns the ids of a partition as [lo, hi): those that begin
// with its name and a colon.
func partitionBounds(name string) (lo, hi string) { return name + ":", name + ";" }
