// Package protocol runs one replication from its start to its end: it finds
// where the last one ended, reads the changes since, asks the target which
// revisions it does not have, copies those, and remembers on both sides how far
// it has come.
package protocol
