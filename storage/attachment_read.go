package storage

import (
	"io"

	"divan/storage/contents"
)

// OpenAttachment returns length bytes of a content from offset on, all that
// follow when length is negative. The bytes are those that were stored. The
// reader pins the store until Close: see contents.Reader. The error is fault.NotFound when there is no such
// content.
func (s *Store) OpenAttachment(id string, key [16]byte, offset, length int64) (io.ReadCloser, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	r, err := contents.Open(s.read.now(), id, key, offset, length)
	if err != nil {
		return nil, err
	}
	s.cache.pin(&s.handle)
	r.Release(func() { s.cache.release(&s.handle) })
	return r, nil
}
