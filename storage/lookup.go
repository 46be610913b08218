package storage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
)

// Lookup reads many records of one moment for less than as many calls of
// Store.Record: it keeps its iterator from one to the next. It belongs to one
// goroutine; the caller holds a pin on the store until Close.
type Lookup struct {
	it  *pebble.Iterator
	key []byte
}

// Lookup returns a reader of records as of the last applied batch.
func (s *Store) Lookup() (*Lookup, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	it, err := s.db.Load().NewIter(&pebble.IterOptions{
		LowerBound: spaceStart(spaceDocs), UpperBound: spaceEnd(spaceDocs), UseL6Filters: true,
	})
	if err != nil {
		return nil, fmt.Errorf("look up records: %w", err)
	}
	return &Lookup{it: it}, nil
}

// Record is Store.Record. Ascending ids are the cheapest order.
func (l *Lookup) Record(id string) (rec doc.Record, ok bool, err error) {
	l.key = appendDocKey(l.key[:0], id)
	if !l.it.SeekPrefixGE(l.key) {
		if err := l.it.Error(); err != nil {
			return rec, false, fmt.Errorf("look up record: %w", err)
		}
		return rec, false, nil
	}
	rec, err = decodeRecordCopy(id, l.it)
	return rec, err == nil, err
}

// Close ends the reading.
func (l *Lookup) Close() error {
	if err := errors.Join(l.it.Error(), l.it.Close()); err != nil {
		return fmt.Errorf("look up records: %w", err)
	}
	return nil
}
