// Package query holds the language of Mango: selectors that are parsed once
// and matched against the text of documents (semantics.md section 14).
//
// Parse turns a selector into CouchDB's normal form: every condition explicit,
// objects as dotted paths, $not and $nor pushed down to the conditions. That
// form is what is matched, because it decides what a document without a field
// means. Match works on the canonical JSON text of a document without decoding
// it: one pass over the top level finds the members that the selector names,
// and a comparison reads only the value it needs.
//
// Values compare as view keys do (package collate). For numbers and ASCII
// strings that order is computed directly; everything else goes through the
// key bytes. The package is pure: no clock, no lock, no goroutine of its own.
package query
