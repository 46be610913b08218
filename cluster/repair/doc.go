// Package repair brings the copies of a range in line with each other. A node
// only ever pushes: from a copy of its own to a copy of the same range on
// another node. It follows the changes of its own copy from the last
// checkpoint of that pair on, asks the other copy which of those revisions it
// does not know, and sends them as replicated edits. Purges go first, in both
// directions. When every node does that, all copies converge.
//
//   - checkpoint.go, resume.go: what two copies are known to share (pure).
//   - schedule.go, walk.go: which pairs are due (pure).
//   - rebuild.go: when a copy that was lost is whole again (pure).
//   - push*.go: one push.
//   - repair.go and the rest: the node's pushes, and talk with other nodes.
//
// DESIGN.md says why. LOCKS: Repair.mu and rebuilds.mu are leaves; while one
// is held, nothing is called but reads of the metadata, and nothing waited for.
package repair
