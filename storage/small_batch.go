package storage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/small"
)

// smallBatch is the part of a batch that was begun while its store was small.
type smallBatch struct {
	shared *smallStores // pinned; where it goes
	join   bool         // the batches before it are to be put together
	was    *small.View  // what was put together; nil: nothing
	whole  *pebble.Batch
	base   *small.View // of whole
}

// newSmallBatch begins one. With reserve it takes the room that is kept on the disk.
func (s *Store) newSmallBatch(reserve bool) (*smallBatch, error) {
	acquire := s.host.reserve
	if !reserve {
		acquire = func() (*smallStores, error) { return s.host.writable(false) }
	}
	shared, err := acquire()
	if fault.Is(err, fault.NoCopy) {
		err = errMissingSmall()
	}
	if err != nil {
		return nil, err
	}
	return &smallBatch{shared: shared}, nil
}

func errMissingSmall() error {
	return fault.New(fault.Corruption, "What is stored of a small shard is missing.")
}

// end gives back what the batch holds.
func (b *smallBatch) end() {
	if b.shared != nil {
		b.shared.cache.release(&b.shared.handle)
		b.shared = nil
	}
	if b.whole != nil {
		_ = b.whole.Close() // of memory only
		b.whole = nil
	}
}

// place decides where a batch goes that was begun while the store was small: among the small ones, or into an
// instance of its own, which it opens. What aggregates and sequences add to it is not known yet. The
// caller holds s.opening.
func (b *Batch) place() error {
	s := b.s
	if !s.inst.Opened() {
		small, err := b.staysSmall(s.small.Load())
		if err != nil || small {
			return err
		}
	}
	db, err := s.openOwn()
	if err != nil {
		return err
	}
	b.small.end()
	b.small = nil
	next := db.NewBatch(pebble.WithMaxRetainedSizeBytes(retainedBytes))
	err = errors.Join(next.Apply(b.b, nil), b.b.Close())
	b.b = next
	return err
}

// staysSmall reports whether the store is small with one more batch, if need be after those before are
// put together.
func (b *Batch) staysSmall(v *small.View) (stays bool, err error) {
	empty, err := b.s.env.emptyDB()
	damage := &b.s.host.damage
	if err != nil || damage.Met() || damage.Begun() != b.s.rewrites.Load() { // what it has may be damaged, or was not written anew
		return false, err
	}
	b.small.was = v
	stays, b.small.whole, b.small.base, err = v.Fits(empty, b.Size(), b.small.join)
	return stays, err
}

// applySmall adds a batch with that number to what the store has among the small ones, and returns
// what is on its way to the disk. The caller holds s.opening.
func (s *Store) applySmall(b *pebble.Batch, to *smallBatch, number uint64) (way *pebble.Batch, err error) {
	empty, err := s.env.emptyDB()
	if err != nil {
		return nil, err
	}
	way = to.shared.inst.DB().NewBatch()
	base := s.small.Load()
	if to.whole != nil {
		base = to.base
		err = small.Join(way, s.id.UUID, to.was, to.whole)
	}
	v, e := base.With(empty, b, number)
	if err = errors.Join(err, e); err == nil {
		err = small.Put(way, s.id.UUID, number, b)
	}
	if err == nil {
		err = to.shared.inst.DB().ApplyNoSyncWait(way, pebble.Sync)
	}
	if err = errors.Join(err, to.shared.Err()); err != nil {
		return nil, fmt.Errorf("apply batch: %w", err)
	}
	s.hold(v)
	return way, nil
}

// joinSmall has the batches of a small store put together: what was written again or deleted goes. Any
// other store is compacted by its files.
func (b *Batch) joinSmall() {
	if b.small != nil {
		b.small.join = true
	}
}
