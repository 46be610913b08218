// Package storage is the engine under the shards: one Pebble store per shard
// copy, and what all stores of a node share (block cache, file cache,
// compaction slots, file system, the lock on the data directory).
//
// An Engine opens stores on demand and closes those that nobody uses. A Store
// is read by many goroutines and written by one: the shard's writer builds a
// Batch, applies it (visible at once), goes on with the next one and waits for
// durability in order. FORMAT.md describes every byte on disk; keys.go is the
// only code that builds a key.
package storage
