// Package doc holds what a document is, apart from where it is kept: revision
// names, the revision tree with its merge and winner rules, the envelope a
// client sends (a JSON object with underscore members), attachment stubs, and
// the binary forms of all of them.
//
// The package is pure: no I/O, no clock, no randomness, no goroutine. The same
// calls give the same bytes on every node, which is what lets copies of a
// document that took the same edits in different orders end up identical.
//
// Files: rev.go (names of revisions), tree.go and treemerge.go (the tree),
// treecodec.go, record.go and revision.go (bytes), scan.go and scanstring.go
// and scannumber.go (the JSON scanner), envelope.go and attachments.go (the
// client's document), members.go (helpers for other request bodies).
package doc
