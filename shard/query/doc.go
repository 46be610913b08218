// Package query holds the language of Mango: selectors that are parsed once
// and matched against the text of documents, and lists of fields that select a
// part of a document (semantics.md section 14).
//
// Parse turns a selector into CouchDB's normal form: every condition explicit,
// objects as dotted paths, $not and $nor pushed down to the conditions. Match
// uses that form, because it decides what a document without a field means.
// Match works on the canonical JSON text of a document without decoding it: one
// pass over the top level finds the members that the selector names, and a
// comparison reads only the value it needs.
//
// Of several members of one name in an object the last one counts, as for the
// parsers of clients, on the way to a value and within it (once.go); so a
// document is read to its end.
//
// Values compare as view keys do (package collate): integers of any size exactly, strings by
// collation; the field _id by its bytes. For numbers and ASCII strings that order is computed
// directly; everything else goes through the key bytes.
//
// Where it differs from CouchDB on purpose:
//   - $regex is RE2, with a slower engine for what RE2 has not (look-around,
//     back-references, atomic groups), and matches characters where CouchDB
//     matches bytes. Patterns have limits.
//   - $nor within $elemMatch and its like means none of its conditions; in
//     CouchDB it is an error while matching, so that nothing is found.
//   - What CouchDB finds out only while matching is refused when it is parsed:
//     a path with an empty name, a $mod by zero. A divisor has at most 4096 digits.
//   - Selectors have limits of depth, of the memory that they take, and of the time
//     that matching takes (work.go). What exceeds one is refused, never "no match".
//
// The package is pure: no lock, no goroutine of its own, and a clock only to
// measure what matching takes.
package query
