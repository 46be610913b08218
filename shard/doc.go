// Package shard does every operation on the copies of shards that this node
// holds: the write pipeline, reads, changes with notification, local
// documents, purge, compaction, attachments.
//
// # A write
//
// The goroutine of a request reads the documents it edits, decides the edits
// in memory (decide.go, state.go: pure), asks validation functions, and queues.
// The one writer of the copy takes what waits, puts it into one batch, applies
// it, and goes on with the next batch while the finisher waits until the last
// is on disk, publishes its sequence and answers (replica.go, round.go). What
// was decided on a document that changed in the meantime is decided again by
// the writer.
//
// Invariants stand on the types they bind: horizon (H1 to H3: nothing is shown
// before it is durable) and replica (R1, R2).
//
// # Goroutines
//
//	writer    one per copy that is written to; ends when the copy is idle
//	finisher  belongs to a writer, which waits for it
//	compaction one per running compaction
//
// Local.Close waits for all of them.
//
// # LOCKS
//
// Local.mu → replica.mu. horizon.waitLock is taken alone, as the last. Nothing
// is read, written or waited for while one of them is held.
package shard
