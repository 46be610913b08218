package postings

import (
	"bytes"
	"cmp"
	"errors"

	"divan/storage"
)

// ids reads ids by their numbers. One iterator goes from block to block: numbers mostly ascend,
// and most blocks are near the one before.
type ids struct {
	it    *storage.IndexIterator
	key   []byte
	have  bool // a block
	first Number
	block []byte // valid until the iterator moves
	rest  []byte // of the block, behind id
	next  Number // of the first id of rest
	id    []byte
}

// ID returns the id of a document; it is valid until the next call.
func (r *Reader) ID(n Number) ([]byte, error) {
	s := &r.ids
	if first := n &^ (1<<idBits - 1); !s.have || s.first != first {
		if err := s.read(r.snap, first); err != nil {
			return nil, err
		}
	} else if n+1 < s.next {
		s.rest, s.next = s.block, first
	}
	for s.next <= n {
		var ok bool
		if s.id, s.rest, ok = cutText(s.rest); !ok {
			s.have = false
			return nil, errDamaged()
		}
		s.next++
	}
	return s.id, nil
}

// read goes to a block, by its first number.
func (s *ids) read(snap *storage.IndexSnapshot, first Number) (err error) {
	s.have = false
	if s.it == nil {
		prefix := []byte{spaceIDs}
		if s.it, err = snap.Iterate(prefix, prefixEnd(prefix)); err != nil {
			return err
		}
	}
	s.key = appendIDsKey(s.key[:0], first)
	if !s.it.SeekGE(s.key) || !bytes.Equal(s.it.Key(), s.key) {
		return cmp.Or(s.it.Err(), errDamaged())
	}
	s.block, err = s.it.Value()
	s.rest, s.first, s.next, s.have = s.block, first, first, err == nil
	return err
}

// Close gives back what the reader took of the snapshot.
func (r *Reader) Close() (err error) {
	for _, v := range r.columns {
		err = errors.Join(err, v.block.Close())
	}
	r.columns = nil
	if r.ids.it != nil {
		err = errors.Join(err, r.ids.it.Close())
		r.ids = ids{}
	}
	return err
}
