package storage

import (
	"errors"

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

// place decides where a batch goes that was begun while the store was small: among the small ones,
// or into an instance of its own, which it opens. What aggregates and sequences add to it is not
// known yet. The caller holds Store.opening.
func (b *Batch) place() error {
	s := b.s
	if !s.inst.Opened() {
		small, err := b.small.stays(&s.small, b.Size())
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

// stays reports whether a store is small with one more batch of so many bytes, if need be after
// those before are put together.
func (b *smallBatch) stays(p *smallPart, size int) (stays bool, err error) {
	empty, err := p.h.env.emptyDB()
	damage := &p.host.damage
	if err != nil || damage.Met() || damage.Begun() != p.rewrites.Load() { // what it has may be damaged, or was not written anew
		return false, err
	}
	b.was = p.view.Load()
	stays, b.whole, b.base, err = b.was.Fits(empty, size, b.join)
	return stays, err
}
