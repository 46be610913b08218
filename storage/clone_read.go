package storage

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// StoredDoc is a document in the bytes that a store keeps of it, to be put into
// another store under the same sequence (Transfer.Replace).
type StoredDoc struct {
	ID     string
	Change []byte           // its entry in the sequence
	Record []byte           // with its whole history in it
	Bodies []StoredRevision // of the bodies keyspace
	// Kept are contents that its revisions refer to and that the other store was
	// seen to have.
	Kept [][16]byte
}

// StoredRevision is the content of a revision as it is stored.
type StoredRevision struct {
	Rev  doc.Rev
	Text []byte
}

// RecordTexts calls fn for each of many documents, whose ids are in ascending order,
// with its record in the stored form, its whole history in it, nil for one that does not
// exist. It is valid until fn returns.
func (s *Snapshot) RecordTexts(ids []string, fn func(i int, record []byte) error) error {
	return s.texts(keyspace.Docs, ids, func(i int, record []byte) error {
		record, err := records.Expand(s.snap, ids[i], record)
		if err != nil {
			return err
		}
		return fn(i, record)
	})
}

// Fronts is Reader.Fronts of the moment.
func (s *Snapshot) Fronts(ids []string, fn func(i int, front []byte) error) error {
	return s.texts(keyspace.Heads, ids, fn)
}

func (s *Snapshot) texts(space byte, ids []string, fn func(i int, value []byte) error) error {
	if err := s.s.Err(); err != nil {
		return err
	}
	err := records.Walk(s.snap, space, ids, func(i int, it *pebble.Iterator) error {
		if it == nil {
			return fn(i, nil)
		}
		value, err := it.ValueAndErr()
		if err == nil {
			err = fn(i, value)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read records: %w", err)
	}
	return nil
}

// Bodies calls fn for each revision of a document in the bodies keyspace. text is
// valid until fn returns.
func (s *Snapshot) Bodies(id string, fn func(rev doc.Rev, text []byte) error) error {
	return eachBody(s.snap, id, fn)
}

func eachBody(r pebble.Reader, id string, fn func(rev doc.Rev, text []byte) error) error {
	return records.Each(r, keyspace.OfDoc(keyspace.Bodies, id), keyspace.OfDocEnd(keyspace.Bodies, id), func(key, value []byte) error {
		_, rev, ok := keyspace.CutBody(key)
		if !ok {
			return corruptKey("body", id)
		}
		return fn(rev, value)
	})
}

// Content calls fn for each chunk of a content, in order; for none when there is no
// such content. A chunk is valid until fn returns.
func (s *Snapshot) Content(id string, key [16]byte, fn func(chunk []byte) error) error {
	if err := s.s.Err(); err != nil {
		return err
	}
	next := uint32(0)
	return records.Each(s.snap, keyspace.AppendContent(nil, id, key), keyspace.ContentEnd(id, key), func(k, value []byte) error {
		_, _, chunk, ok := keyspace.CutChunk(k)
		if !ok || chunk != next {
			return corruptKey("attachment", id)
		}
		next++
		return fn(value)
	})
}

// Origins returns the stores that this one continues, the newest first. They must not
// be changed.
func (s *Store) Origins() []Origin { return s.states.applied().origins }

// Origins is Store.Origins of the moment.
func (s *Snapshot) Origins() []Origin { return s.state.origins }
