// Package view keeps the indexes of map/reduce views and of Mango on the copies
// of this node, and answers queries of them (semantics.md section 12).
//
// A Definition is the part of a design document that counts for views. Views
// builds the index of a definition next to a copy (package index), and answers a
// Request with a Stream: rows of some ranges in their order, or one reduced row
// per group. Merging what several copies answer, and finishing reductions, is the
// coordinator's. DESIGN.md says why it is as it is, FORMAT.md what is stored.
//
// # Where to look
//
//	definition.go         what a design document says; request.go: what is asked
//	kind.go, mapped.go    what becomes of documents, and how it is stored
//	mapper.go             map functions in JavaScript, and fields of Mango indexes
//	blocks.go             aggregates; blocks_mend.go, blocks_build.go: how they are
//	                      kept; blocks_read.go: adding up a range
//	stream.go             rows of a range; stream_reduce.go: groups
//	script_reduce.go      reduce functions in JavaScript
package view
