// Package shard does every operation on the copies of shards that this node
// holds: the write pipeline, reads, changes with notification, local documents,
// purge, compaction.
package shard
