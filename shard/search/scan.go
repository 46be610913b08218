package search

import (
	"context"
	"errors"

	"divan/shard/search/postings"
	"divan/storage"
)

// scan reads a snapshot for one query, a chunk at a time. It has the words and the figures of
// fields that were looked up, and the memory that the query takes.
type scan struct {
	ctx   context.Context
	turn  *turn
	r     *postings.Reader
	space space
	statistics
	none postings.Set // of no document; it is only read

	// Of the chunk at hand:
	chunk  uint32
	size   uint32
	lists  []*postings.List
	opened []*word
	err    error // of what is read while matching
}

// open begins a scan of a snapshot, in the turns of a query.
func (s *scan) open(t *turn, snap *storage.IndexSnapshot) (err error) {
	s.ctx, s.turn, s.space = t.ctx, t, space{left: smallBytes, grow: t.grow}
	if s.r, err = postings.NewReader(snap, &s.space); err != nil {
		return err
	}
	s.statistics = newStatistics(s.r.Versions())
	return nil
}

// take takes space for a matcher of the chunk at hand.
func (s *scan) take(bytes int) error {
	s.space.taken += bytes
	return s.space.Take(bytes)
}

// closeChunk gives back what was read of a chunk, and tells what was damaged.
func (s *scan) closeChunk() (err error) {
	for _, l := range s.lists {
		err = errors.Join(err, l.Err())
	}
	for _, w := range s.opened {
		w.open = false
		err = errors.Join(err, w.list.Close())
	}
	s.lists, s.opened = s.lists[:0], s.opened[:0]
	s.space.left, s.space.taken = s.space.left+s.space.taken, 0
	return err
}
