// Package cluster holds the coordinator: every operation on a database as
// clients see it, made of operations on copies of shards. A file holds one
// operation. Handlers never see a shard, the coordinator never sees the
// storage engine, and a copy on this node is called directly.
//
// What the answers of several copies amount to is decided by package quorum.
// The map of databases, their security objects and limits come from package
// meta; documents never go through Raft.
//
// Goroutines: a fan-out starts one per shard when more than one shard is
// involved and waits for all of them before it returns; [DocRows] and [Feed]
// start one per shard for long results, which end with Close; an upload starts
// two, which end before Upload returns, and one per copy of another node.
// Questions to other nodes run on goroutines that end with the request, writes
// to slower copies on some that end with their own deadline;
// [Coordinator.Close] waits for both. [Coordinator.Run] reconciles the copies
// on disk with the map.
package cluster
