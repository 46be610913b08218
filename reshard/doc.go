// Package reshard splits, merges and moves shards while they are in use (docs/decisions/0040-splitting.md and
// 0041-moving.md).
//
// A job (package job) is a record of the metadata. Requests change it on any node
// ([Table]); the node that holds the shard does what is left to do ([Resharder]), which
// follows from the job and the map: it proposes transitions of copies and notes how far it
// is, and decides nothing about documents.
//
// A record is replaced only as the version that it was decided on. Who finds another one
// gives way: a request decides anew, and work on the job ends and begins again with what
// the job is now.
//
// Goroutines: Run owns those of Resharder, one per job that it works on.
package reshard
