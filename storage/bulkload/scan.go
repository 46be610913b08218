package bulkload

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/keyspace"
)

// scan reads the keyspaces of one moment, one entry after the other.
type scan struct {
	source pebble.Reader
	// looked hears now and then how many documents were looked at since. Its error ends the work.
	looked func(docs int) error

	docs, bytes int   // since looked was called
	read        int64 // bytes, of everything
}

// lookBytes is how much is looked at before looked is called, about.
const lookBytes = 32 << 10

// look notes what was looked at.
func (s *scan) look(docs, bytes int) error {
	s.docs += docs
	s.read += int64(bytes)
	s.bytes += bytes
	if s.bytes < lookBytes {
		return nil
	}
	docs = s.docs
	s.docs, s.bytes = 0, 0
	return s.looked(docs)
}

// pieceBytes is how much is read of a keyspace by one iterator, about: files that
// compactions of the source have replaced stay on the disk while an iterator is open.
const pieceBytes = 4 << 20

// walk calls fn for each entry of a keyspace from a key on. Between pieces it calls rest.
func (s *scan) walk(lo []byte, docs int, fn func(key, value []byte) error, rest func() error) error {
	for {
		next, err := s.walkPiece(lo, docs, fn)
		if next == nil || err != nil {
			return err
		}
		if rest != nil {
			if err := rest(); err != nil {
				return err
			}
		}
		lo = next
	}
}

// walkPiece returns where the next piece begins; nil: this one was the last.
func (s *scan) walkPiece(lo []byte, docs int, fn func(key, value []byte) error) (next []byte, err error) {
	it, err := s.source.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: keyspace.End(lo[0])})
	if err != nil {
		return nil, err
	}
	begin := s.read
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if s.read-begin >= pieceBytes {
			next = bytes.Clone(it.Key())
			break
		}
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = fn(it.Key(), value)
		}
		if err == nil {
			err = s.look(docs, len(it.Key())+len(value))
		}
	}
	return next, errors.Join(err, it.Error(), it.Close())
}
