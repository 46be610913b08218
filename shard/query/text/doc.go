// Package text makes queries of Mango's full-text indexes of selectors (spec/search.md
// section 12.3): Search makes the one that is asked, Explain the text that _explain shows and
// the fields that an index must have for it.
//
// Every document that Search finds is read and matched against the whole selector. So its
// query may find too many and must not find too few. Where CouchDB's does, it is wider: what
// _explain shows is CouchDB's.
//
//   - Strings compare by collation, terms by code points: a comparison with a string finds
//     all strings. Beside $text in an $or it finds by code points, as CouchDB's does:
//     matching takes $text for true, and would let pass what only the other part let in.
//   - The names of the fields of a document, indexed or not, are terms of $fieldnames: a
//     field that is not indexed is found by its name.
//   - A negation is only of what the index knows exactly.
//
// Four rules of CouchDB's indexes remain: an order is one of the values of one type, so
// {"$gt": 5} holds for no string (query.Selector.ByType); strings are equal when they are the same characters,
// not when collation takes them for equal; the lengths of arrays are known only to an
// index that has them; and integers beyond the doubles are not indexed.
//
// The package is pure.
package text
