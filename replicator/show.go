package replicator

import (
	"strconv"

	"divan/replicator/endpoint"
	"divan/replicator/protocol"
	"divan/replicator/spec"
	"divan/storage/doc"
)

// Row is a job or a document as _scheduler shows it.
type Row struct {
	ID    string // of the replication, or of the document
	State string // of a document
	JSON  []byte
}

// object appends the members of a JSON object.
type object struct{ out []byte }

func (o *object) name(name string) {
	before := byte(',')
	if len(o.out) == 0 {
		before = '{'
	}
	o.out = append(doc.AppendString(append(o.out, before), name), ':')
}

// raw adds a member whose value is JSON.
func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.out = append(o.out, value...)
}

func (o *object) text(name, value string) {
	o.name(name)
	o.out = doc.AppendString(o.out, value)
}

// orNull adds a text, or null for an empty one.
func (o *object) orNull(name, value string) {
	if value == "" {
		o.raw(name, []byte("null"))
		return
	}
	o.text(name, value)
}

func (o *object) count(name string, n int64) {
	o.name(name)
	o.out = strconv.AppendInt(o.out, n, 10)
}

// proxy adds the URL of a proxy without its password.
func (o *object) proxy(name, value string) {
	if value != "" {
		value = spec.MaskProxy(value)
	}
	o.orNull(name, value)
}

func (o *object) pending(s *protocol.Stats) {
	if s.ChangesPending < 0 {
		o.raw("changes_pending", []byte("null"))
		return
	}
	o.count("changes_pending", s.ChangesPending)
}

// seq adds a position, always as a string (api.md section 20, row 7): sources before
// CouchDB 2.0 have numbers; "0" is the beginning.
func (o *object) seq(name string, s endpoint.Seq) {
	switch {
	case s == "":
		o.text(name, "0")
	case s[0] == '-' || s[0] >= '0' && s[0] <= '9':
		o.text(name, string(s))
	default:
		o.raw(name, []byte(s))
	}
}
