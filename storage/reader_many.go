package storage

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// Records reads many documents, whose ids are in ascending order, and calls fn for
// each: nil for one that does not exist. For new ids it takes less than half of
// what as many calls of Record do. The records belong to fn; nothing aliases the
// store. whole is asked about each that is Partial whether its whole history is needed; nil:
// of none.
func (r *Reader) Records(ids []string, whole func(i int, rec *doc.Record) bool, fn func(i int, rec *doc.Record)) error {
	return r.walk(keyspace.Docs, ids, func(i int, it *pebble.Iterator) error {
		if it == nil {
			fn(i, nil)
			return nil
		}
		rec, err := records.Decode(ids[i], it)
		ok := true
		if err == nil && rec.Partial && whole != nil && whole(i, &rec) {
			rec, ok, err = records.Get(r.now(), ids[i])
		}
		switch {
		case err != nil:
			return err
		case ok:
			fn(i, &rec)
		default:
			fn(i, nil) // gone meanwhile
		}
		return nil
	})
}

// Fronts is Records for what doc.DecodeHead reads, without Inline: nil for a
// document that does not exist. It comes from the keyspace of heads, which has a
// twentieth of the bytes. A front is valid until fn returns.
func (r *Reader) Fronts(ids []string, fn func(i int, front []byte) error) error {
	return r.walk(keyspace.Heads, ids, func(i int, it *pebble.Iterator) error {
		if it == nil {
			return fn(i, nil)
		}
		value, err := it.ValueAndErr()
		if err == nil {
			err = fn(i, value)
		}
		return err
	})
}

// walk looks ids up in a keyspace that has all documents. fn gets an iterator on
// the document, nil when there is none.
func (r *Reader) walk(space byte, ids []string, fn func(i int, it *pebble.Iterator) error) error {
	if err := r.h.Err(); err != nil {
		return err
	}
	last := r.states.applied().last // before the iterator: it may show more, not less
	known, _ := slices.BinarySearch(ids, last+"\x00")
	if err := records.Walk(r.now(), space, ids[:known], fn); err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	for i := known; i < len(ids); i++ {
		if err := fn(i, nil); err != nil {
			return err
		}
	}
	return nil
}
