package storage

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Merge appends to the value of a key, which it makes when there is none; see
// Options.JoinIndex.
func (b *IndexBatch) Merge(key, operand []byte) { _ = b.b.Merge(key, operand, nil) } // as Set

// Borrow returns the value of a key where the engine has it, until it is given back by
// closing it; that has to be before the snapshot is closed. Nothing is to be closed when
// there is no such key.
func (s *IndexSnapshot) Borrow(key []byte) (value []byte, back io.Closer, err error) {
	if err := s.x.Err(); err != nil {
		return nil, nil, err
	}
	value, back, err = s.snap.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, nil
	}
	return value, back, indexError(err)
}
