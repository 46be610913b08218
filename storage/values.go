package storage

import "divan/storage/format"

// The stored values that have a meaning outside of this package.
type (
	// Change is one entry of the sequence: the newest edit of a document.
	Change = format.Change
	// Leaf is one leaf revision in a sequence entry.
	Leaf = format.Leaf
	// Counters are the totals of a store as of one batch.
	Counters = format.Counters
	// Purge is one entry of the purge log.
	Purge = format.Purge
	// Sums are totals over a range of documents.
	Sums = format.Sums
	// Origin names a store that another one continues.
	Origin = format.Origin
)
