// Package metapb holds the entries of the Raft log, the records of a snapshot
// and the questions of nodes about metadata, generated from meta.proto by "make
// generate". Package meta alone uses them.
package metapb
