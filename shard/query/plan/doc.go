// Package plan decides how a Mango query is answered: what a client asks for
// (ParseFind), which indexes there are (IndexesOf), which of them serves the query
// and which of its keys are read (Choose), and what _explain tells about that.
//
// The rules are CouchDB's (semantics.md section 14.3), and more: $in and $or on a
// field of an index become several ranges of keys, where CouchDB reads the whole
// index. The ranges only bound what is read; the selector is matched against
// everything that is, so that they may hold too much and must not hold too little.
//
// The package is pure.
package plan
