package storage

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
)

// smallStores is the instance that has the small stores, while it is open. Like a store it is
// opened on demand, closed when it has failed, and opened again later, for reading while the disk
// is full. It is pinned by what is on its way to the disk; what small stores read is in memory.
type smallStores struct {
	handle
	ends   atomic.Bool   // it is closed with its last pin, to be opened in another way
	ending chan struct{} // closed when ends
	closed chan struct{} // when it was
}

func (s *smallStores) close(bool) error {
	defer close(s.closed)
	return s.inst.Close()
}

func (s *smallStores) remove() error { return nil }

// end has the instance be closed when what is under way has ended, as it is to be opened in another way. It
// does not fail: that would be the end of all stores with a batch on its way. The caller has it pinned.
func (s *smallStores) end() error {
	if !s.ends.Swap(true) {
		close(s.ending)
		s.cache.uncount(&s.handle)
	}
	return errSmallEnds
}

var errSmallEnds = fault.New(fault.Unavailable, "The files of small shards are opened anew.")

// write adds what fn puts into a batch, durably.
func (s *smallStores) write(fn func(r pebble.Reader, b *pebble.Batch) error) error {
	b := s.inst.DB().NewBatch()
	if err := fn(s.inst.DB(), b); err != nil || b.Empty() {
		return errors.Join(err, b.Close())
	}
	return errors.Join(b.Commit(pebble.Sync), b.Close(), s.Err())
}

// compact compacts a range of keys. It ends early when the instance is to be closed: its pin would
// hold that up.
func (s *smallStores) compact(ctx context.Context, span pebble.KeyRange) error {
	ctx, cancel := context.WithTimeout(ctx, reclaimWithin)
	defer cancel()
	err := s.inst.Compact(ctx, s.ending, span.Start, span.End)
	if s.ends.Load() {
		return errSmallEnds
	}
	return err
}
