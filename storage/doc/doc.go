// Package doc defines documents, apart from where they are kept: revision
// names, the revision tree with its merge and winner rules, the envelope a
// client sends (a JSON object with underscore members), attachment stubs, and
// the binary forms of all of them.
//
// The package is pure: no I/O, no clock, no randomness, no goroutine. The same
// calls give the same bytes on every node, so copies of a document that took
// the same edits in different orders end up identical.
//
// Files: rev.go (names of revisions); tree.go and tree_merge.go
// (the tree);
// revision.go, record.go, tree_codec.go, reader.go (stored bytes); scan.go,
// scan_string.go (the JSON scanner); envelope.go, attachments.go,
// bulk.go (a client's documents); members.go (other request bodies); splice.go
// (a document on its way to a client).
package doc
