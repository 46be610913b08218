package records

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
)

// Value returns a copy of the value of a key, false when it has none.
func Value(r pebble.Reader, key []byte) ([]byte, bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read: %w", err)
	}
	out := append(make([]byte, 0, len(value)), value...)
	return out, true, closer.Close()
}

// LastID returns the highest id of a document, empty when there is none.
func LastID(r pebble.Reader) (id string, err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: keyspace.Start(keyspace.Docs), UpperBound: keyspace.End(keyspace.Docs)})
	if err != nil {
		return "", fmt.Errorf("find the last document: %w", err)
	}
	if it.Last() {
		id = string(keyspace.Tail(it.Key()))
	}
	if err = errors.Join(it.Error(), it.Close()); err != nil {
		return "", fmt.Errorf("find the last document: %w", err)
	}
	return id, nil
}

// Head fills h with the front of the record of a document; false when there is none. h.Inline
// is a copy.
func Head(r pebble.Reader, id string, h *doc.Head) (bool, error) {
	var buf [128]byte
	return decodeHeadAt(r, keyspace.AppendDoc(buf[:0], id), h)
}

// Front is Head without Inline, from the keyspace of heads.
func Front(r pebble.Reader, id string, h *doc.Head) (bool, error) {
	var buf [128]byte
	return decodeHeadAt(r, keyspace.AppendHead(buf[:0], id), h)
}

func decodeHeadAt(r pebble.Reader, key []byte, h *doc.Head) (bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	if err = doc.DecodeHead(value, h); err == nil && h.Inline != nil {
		h.Inline = append(make([]byte, 0, len(h.Inline)), h.Inline...)
	}
	if err = errors.Join(err, closer.Close()); err != nil {
		return false, fmt.Errorf("read document: %w", err)
	}
	return true, nil
}

// Revision returns a revision from the bodies keyspace, false when it is not there.
func Revision(r pebble.Reader, id string, rev doc.Rev) (v doc.Revision, ok bool, err error) {
	var buf [160]byte
	value, ok, err := Value(r, keyspace.AppendBody(buf[:0], id, rev))
	if err != nil || !ok {
		return v, false, err
	}
	v, err = doc.DecodeRevision(value)
	return v, err == nil, err
}
