// Package indexer makes the fields of documents that full-text indexes hold: by the index()
// functions of design documents, for _search and for _nouveau, and for the indexes of Mango,
// whose fields are those of the documents.
//
// What a call of index() means is decided in search_call.go and nouveau_call.go, without
// JavaScript. A document whose function throws has no fields. One whose calls were all
// taken, but give nothing to look for, has a field that is neither indexed nor stored:
// queries for all documents find it.
package indexer
