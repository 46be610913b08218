package garbage

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Uses are the contents that the revisions of a document refer to, inner ones
// too: while they are stored, a stub of an edit finds its attachment with them.
type Uses struct {
	ID      string // of the document
	damaged bool   // the document cannot be read; it may refer to anything
	keys    map[keyspace.ContentKey]bool
}

// ReadUses returns them. It costs a read of everything the document has but its contents.
func ReadUses(r pebble.Reader, id string) (Uses, error) {
	u := Uses{ID: id, keys: map[keyspace.ContentKey]bool{}}
	rec, _, err := records.GetTip(r, id)
	if err == nil && rec.Inline != nil {
		err = useContents(u.keys, rec.Inline)
	}
	if err == nil {
		err = records.Each(r, keyspace.OfDoc(keyspace.Bodies, id), keyspace.OfDocEnd(keyspace.Bodies, id), func(_, value []byte) error {
			return useContents(u.keys, value)
		})
	}
	if fault.Is(err, fault.Corruption) || pebble.IsCorruptionError(err) {
		u.damaged, err = true, nil
	}
	if err != nil {
		return u, fmt.Errorf("document %q: %w", id, err)
	}
	return u, nil
}

// Has reports whether a revision refers to a content.
func (u *Uses) Has(key keyspace.ContentKey) bool { return u.damaged || u.keys[key] }
