// Package shard does every operation on the copies of shards that this node
// holds: the write pipeline, reads, changes with notification, local
// documents, purge, compaction, attachments.
//
// # A write
//
// The goroutine of a request reads the documents it edits, decides the edits in
// memory (edit_plan.go, decision.go, doc_state.go: pure), asks validation
// functions, and queues. The one writer of the copy takes what waits, puts it
// into one batch, a group commit, applies it, and goes on with the next while
// the finisher waits until the last is on disk, publishes its sequence and
// answers (writer.go, group_commit.go). What was decided on a document that
// changed in the meantime is decided again by the writer.
//
// Invariants stand on the types they bind: durableSequence (D1 to D3: nothing is
// shown before it is durable) and copyState (C1, C2).
//
// # What is not here
//
//	deleted  the winner is a tombstone
//	missing  a document or revision that the copy does not know
//	absent   attachment content that an edit or a revision refers to and that
//	         is not stored in this copy
//	removed  a revision that stemming or a purge took out of the tree
//	purged   a revision removed by a purge, here or on another copy; the purge
//	         log remembers it
//	lost     a write that was applied and that a crash or a failing disk took
//	         back before it was durable
//
// # Goroutines
//
//	writer     one per copy that is written to; ends when the copy is idle
//	finisher   belongs to a writer, which waits for it
//	compaction one per running compaction
//	clone      one that ends with the Local and one that writes what is read, per
//	           running Clones.Range; the first also per Clones.LocalDocs
//
// Local.Close waits for all of them.
//
// # LOCKS
//
// Compactions.mu → copyStates.mu → copyState.mu. durableSequence.waitLock is taken alone, as the last.
// Nothing is read, written or waited for while one of them is held.
package shard
