// Package index keeps what follows the copies of a node: one store per copy and
// signature (storage.Index), brought up to date with the copy when a caller
// asks, or in the background.
//
// A Manager knows nothing of what an index holds. A Kind says what becomes of a
// document (Map, on many goroutines at once) and how that gets into the store
// (Apply, in the order of the copy's changes). The manager reads the documents,
// keeps the position of the index in the same batch as what it reflects, deals
// with purges, lets many who wait share one update, sets aside what is damaged
// and removes what is no longer wanted.
//
// What updates take of memory has a budget (budget), and a document that cannot be
// indexed is tried again with growing pauses (failure).
//
// # Following a copy
//
// A new index is filled from a listing of the copy's documents in the order of
// their ids: neighbours lie in the same blocks, and what the index stores by id
// comes in order. Its position is then the sequence of the moment at which the
// scan began, so that edits made meanwhile come again as changes; a document is
// always replaced whole, so nothing is counted twice. After that it follows the
// purge log and the changes of the copy.
//
//	I1  what an index reflects is stored in the batch that makes it so: after a
//	    crash it goes on from an earlier position, with the content of that.
//	I2  it never reflects what the copy could lose: everything is read through
//	    package shard, which shows what is durable.
//	I3  an update has one goroutine that applies; only one update of an index
//	    runs at a time.
package index
