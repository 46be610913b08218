// Package listing serves lists of documents: _all_docs, _design_docs, _local_docs,
// of a database or of a partition. Their parameters (Params) are those of views.
package listing
