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

// place decides where a batch goes that was begun while the store was small: among the small ones, or into an
// instance of its own, which it opens. What aggregates and sequences add to it is not known yet. The
// caller holds s.opening.
func (b *Batch) place() error {
	s := b.s
	if !s.inst.Opened() {
		small, err := b.staysSmall(s.small.view.Load())
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
	damage := &b.s.small.host.damage
	if err != nil || damage.Met() || damage.Begun() != b.s.small.rewrites.Load() { // what it has may be damaged, or was not written anew
		return false, err
	}
	b.small.was = v
	stays, b.small.whole, b.small.base, err = v.Fits(empty, b.Size(), b.small.join)
	return stays, err
}

// joinSmall has the batches of a small store put together: what was written again or deleted goes. Any
// other store is compacted by its files.
func (b *Batch) joinSmall() {
	if b.small != nil {
		b.small.join = true
	}
}
