package storage

import (
	"github.com/cockroachdb/pebble/v2"

	"divan/storage/rewritten"
)

// IndexIterator walks over keys in either direction. Each step reports whether it
// stands on a key.
type IndexIterator struct {
	it   *pebble.Iterator
	hot  rewritten.Hot
	seek []byte // scratch
}

// First moves to the first key.
func (i *IndexIterator) First() bool { return i.it.First() }

// Last moves to the last key.
func (i *IndexIterator) Last() bool { return i.it.Last() }

// Next moves to the following key.
func (i *IndexIterator) Next() bool { return i.it.Next() }

// NextRewritten is Next among keys that IndexBatch.Rewrite has set.
func (i *IndexIterator) NextRewritten() bool {
	if key := i.it.Key(); i.hot.Has(key) {
		i.seek = append(append(i.seek[:0], key...), 0)
		return i.it.SeekGE(i.seek)
	}
	return i.it.Next()
}

// Prev moves to the preceding key.
func (i *IndexIterator) Prev() bool { return i.it.Prev() }

// SeekGE moves to the first key that is not below key.
func (i *IndexIterator) SeekGE(key []byte) bool { return i.it.SeekGE(key) }

// SeekLT moves to the last key below key.
func (i *IndexIterator) SeekLT(key []byte) bool { return i.it.SeekLT(key) }

// SetBounds changes the bounds; the slices must stay as they are. The iterator
// has to be moved after that.
func (i *IndexIterator) SetBounds(lo, hi []byte) { i.it.SetBounds(lo, hi) }

// Key returns the key it stands on, until it moves.
func (i *IndexIterator) Key() []byte { return i.it.Key() }

// Value returns the value of the key it stands on, until it moves.
func (i *IndexIterator) Value() ([]byte, error) {
	v, err := i.it.ValueAndErr()
	return v, indexError(err)
}

// Err returns why a step failed.
func (i *IndexIterator) Err() error { return indexError(i.it.Error()) }

// Close gives the iterator back and returns what Err does.
func (i *IndexIterator) Close() error { return indexError(i.it.Close()) }
