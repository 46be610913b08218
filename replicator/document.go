package replicator

import (
	"crypto/md5"
	"strings"
	"time"

	"divan/replicator/spec"
	"divan/storage/doc"
)

// docKey names a document of a replicator database.
type docKey struct{ db, id string }

// document is a document of a replicator database whose replication this node
// runs. One whose replication has ended is not kept.
type document struct {
	key   docKey
	slot  int
	term  uint64
	text  [md5.Size]byte // of what the client wrote
	spec  *spec.Spec
	began time.Time // when it was seen

	// Guarded by Documents.mu.
	job      *job      // nil: its id is not known yet
	attempts int       // to find its id that failed in a row
	reason   string    // of the last one
	updated  time.Time // of the last one
	due      time.Time // when its filter function is to be read, or failed to be written
	failed   string    // why it can never run; empty: it can
	resolving,
	told bool // that it is triggered
}

// filtered reports whether a function selects what is copied.
func (d *document) filtered() bool { return strings.Contains(d.spec.Filter.Function, "/") }

// serverMember reports whether a member of a document is written by the server.
func serverMember(name string) bool { return strings.HasPrefix(name, "_replication_") }

// clientText is a hash of the members that the client wrote.
func clientText(body []byte) (sum [md5.Size]byte) {
	h := md5.New()
	_ = doc.EachMember(body, func(name string, value []byte) error { // what is stored is well-formed
		if !serverMember(name) {
			_, _ = h.Write(doc.AppendString(nil, name)) // never fails
			_, _ = h.Write(value)
		}
		return nil
	})
	h.Sum(sum[:0])
	return sum
}
