// Package local is a database of this cluster as a side of a replication: it
// asks the coordinator of this node, without HTTP and without JSON in between.
// An account may do what it may over HTTP: what every operation asks for is a
// request (GET _changes, POST _bulk_docs, …) that Access allows or refuses.
//
// A Database holds nothing: each operation opens the database by its name, so
// that one which was deleted is seen to be gone, and a changed security object
// counts at once.
package local
