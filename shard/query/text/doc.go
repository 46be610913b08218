// Package text makes queries of Mango's full-text indexes of selectors (spec/search.md
// section 12.3): Search makes the one that is asked, Explain the text that _explain shows and
// the fields that an index must have for it.
//
// Every document that Search finds is read and matched against the whole selector. So its
// query may find too many and must not find too few. Where CouchDB's does, it is wider: what
// _explain shows is CouchDB's.
//
//   - Values of different types compare by their types: {"$gt": 5} holds for every string.
//   - Strings compare by collation, terms by code points: a comparison with a string finds
//     all strings. Beside $text in an $or it finds by code points, as CouchDB's does:
//     matching takes $text for true, and would let pass what only the other part let in.
//   - The names of the fields of a document, indexed or not, are terms of $fieldnames: a
//     field that is not indexed is found by its name.
//   - A negation is only of what the index knows exactly.
//
// Two rules of CouchDB's indexes remain: strings are equal when they are the same characters,
// not when collation takes them for equal; and the lengths of arrays are known only to an
// index that has them.
//
// The package is pure.
package text
