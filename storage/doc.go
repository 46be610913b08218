// Package storage is the engine under the shards: one Pebble store per shard
// copy, and what all stores of a node share (block cache, file cache,
// compaction slots, file system, the lock on the data directory).
//
// An Engine opens stores on demand and closes stores that are not in use. A
// Store is read by many goroutines and written by one: the shard's writer
// builds a Batch, applies it (visible at once), goes on with the next one and
// waits for durability in order. FORMAT.md describes every byte on disk;
// package keyspace is the only code that builds a key.
//
// # Where to look
//
//	store_cache.go       which stores are open: pins, idle ones, closing
//	create.go, drop.go   making a store and removing it
//	recovery.go          what opening a store does after a crash
//	instance/            one Pebble instance of many: files, memory, failures
//	paths/               where stores are: names of any depth
//	batch.go             what becomes durable together, and when
//	format/              the values that storage itself defines
//	clone_*.go           documents in the bytes that are stored, from store to store
//	aggregate*.go        counting documents and sequences of a range
//	index_store.go       stores for what is derived from a copy
//	attachment_*.go      contents of attachments in chunks; uploads.go: before
//	                     a document refers to them
//	compact.go           dropping what no client can ask for any more
//	check.go             every invariant that binds two keyspaces
package storage
