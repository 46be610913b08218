// Package reduce holds the built-in reduce functions of views, and the rules of
// grouping (semantics.md sections 12.4 to 12.6).
//
// A reduce function makes a state of rows, and one state of several. Unlike
// CouchDB's results of a reduction, the states of the built-in functions lose
// nothing: sums are exact, of integers and of floats, errors are kept beside
// valid results. So however the rows are cut into blocks and shards, and in any
// order in which the states come together, Final gives the same text. An input
// that a function does not take never fails Reduce; what is wrong with it shows
// in Final, for the rows that were asked for only.
//
// The one exception is the limit on the size of a sum (Limit): as in CouchDB it
// is applied where a state is made, so that states stay small.
//
// States are bytes that copies of a shard send to one another and keep in their
// indexes: a change of an encoding is a change of the format of view indexes.
package reduce
