package view

import (
	"bytes"

	"divan/storage/doc"
)

// Link names the document that a row is to be answered with in place of the one that the row was
// made from (linked documents).
type Link struct {
	ID  string
	Rev doc.Rev // zero: the winner
}

// Link returns what the value of a row names. named is false when it names
// nothing; ID is empty when it names no document that can be.
func (r *Row) Link() (l Link, named bool) {
	if len(r.Value) == 0 || r.Value[0] != '{' || !bytes.Contains(r.Value, []byte(`"_`)) {
		return l, false
	}
	id, rev := doc.Lookup(r.Value, "_id"), doc.Lookup(r.Value, "_rev")
	if id == nil && rev == nil {
		return l, false
	}
	if l.ID = r.ID; id != nil {
		l.ID, _ = doc.Unquote(id)
	}
	if text, ok := doc.Unquote(rev); ok {
		var err error
		if l.Rev, err = doc.ParseRev(text); err != nil {
			l.ID = ""
		}
	}
	return l, true
}
