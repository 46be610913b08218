// Package repair brings the copies of a range in line with each other.
//
// A Copier brings what one copy holds to another one: purges first, in both
// directions, then the revisions that the target does not know, as replicated
// edits, each after the contents of its attachments. Which documents it copies
// is up to who uses it: the coordinator names them (read repair), and a push
// takes all that have changed.
//
// A node pushes from each copy of its own to the copies of the same range on
// other nodes, from the last checkpoint of the two on. When every node does
// that, all copies converge.
//
//   - copier.go, copy_*.go: the Copier.
//   - behind.go: what a copy gets that is behind while a client writes.
//   - push.go, digest.go, purge_checkpoint.go: one push.
//   - checkpoint.go, resume.go: what two copies are known to share (pure).
//   - schedule.go, anti_entropy.go: which pairs are due (pure).
//   - joining.go: what fills copies that join.
//   - repair.go and the rest: the node's pushes, and talk with other nodes.
//
// DESIGN.md says why. LOCKS: Repair.mu and joins.mu are leaves; while one
// is held, nothing is called but reads of the metadata, and nothing waited for.
package repair
