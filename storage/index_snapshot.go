package storage

import (
	"errors"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/records"
)

// IndexSnapshot is an index at one moment, between two batches. It pins the
// index until Close. Iterators belong to one goroutine and are closed before.
type IndexSnapshot struct {
	x       *Index
	snap    *pebble.Snapshot
	version uint64
	once    sync.Once
}

// Snapshot returns the index as the last committed batch left it.
func (x *Index) Snapshot() (*IndexSnapshot, error) {
	if err := x.Err(); err != nil {
		return nil, err
	}
	x.cache.pin(&x.handle)
	s := &IndexSnapshot{x: x}
	version, idle := x.version.Load(), x.committing.Load() == 0
	s.snap = x.inst.DB().NewSnapshot()
	if idle && x.committing.Load() == 0 && x.version.Load() == version {
		s.version = version
	}
	return s, nil
}

// Version names the content: snapshots of one version have the same keys and
// values. No other content that the engine opens has it. 0: a batch was being
// committed when the snapshot was taken, so that it is not known.
func (s *IndexSnapshot) Version() uint64 { return s.version }

// Close gives the snapshot and its pin back. It may be called more than once.
func (s *IndexSnapshot) Close() {
	s.once.Do(func() {
		_ = s.snap.Close() // of memory only
		s.x.cache.release(&s.x.handle)
	})
}

// Get appends the value of a key to dst; ok is false when there is none.
func (s *IndexSnapshot) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if err := s.x.Err(); err != nil {
		return dst, false, err
	}
	value, ok, err = records.Append(s.snap, dst, key)
	return value, ok, indexError(err)
}

// Borrow returns the value of a key without a copy, until back is closed, before the
// snapshot. There is no such key where back is nil.
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

// Iterate returns an iterator over the keys from lo on and below hi; an empty
// bound is none. Close it.
func (s *IndexSnapshot) Iterate(lo, hi []byte) (*IndexIterator, error) {
	if err := s.x.Err(); err != nil {
		return nil, err
	}
	return s.x.newIterator(s.snap, lo, hi)
}
