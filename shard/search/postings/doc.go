// Package postings stores documents for full-text queries in a storage.Index: lists of
// the documents that hold a term, with frequencies and positions, columns of values by
// document, and the ids and stored fields of documents. It knows no analysis and no query.
//
// # Numbers
//
// Each version of a document gets the next number. 65,536 numbers are a chunk; an offset
// is a number within its chunk. A chunk ends earlier when it has many bytes. A version that
// was replaced or deleted is dead: its number stays in lists and columns. When half of a
// chunk is dead, the rest gets new numbers in the last one, and the chunk is gone (empty.go).
//
//	key                            value                              written
//	b id                           number                             set
//	f field                        what is known of it (fields.go)    set
//	i number / 256                 ids, each behind its length        merged: appended
//	d chunk                        offsets of dead numbers            merged: appended
//	e chunk                        numbers that it has, at its end    set
//	c chunk kind field block       entries of a column (columns.go)   merged: appended
//	p chunk field term             runs (run.go)                      merged: small runs are joined
//	s number                       stored fields                      set
//	t                              Totals                             set
//
// A number is 6 bytes, big-endian, of which the chunk is the first 4. A field is written
// behind its length, so that no name contains another one's keys. A block of a column
// covers 4,096 numbers.
//
//	P1  what a batch holds of a document, the dead number of its last version and the
//	    totals are in one batch of the index.
//	P2  numbers ascend in the order of batches, so that all that is appended is in order.
//	P3  bytes that make no sense give fault.Corruption, and Join leaves them alone.
package postings
