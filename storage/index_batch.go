package storage

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/small"
)

// IndexBatch collects changes of an index that are committed together. It is
// meant to be used again.
type IndexBatch struct {
	x       *Index
	b       *pebble.Batch
	indexed bool
	large   bool // it was: see Close
}

// NewBatch returns an empty batch; Close it. reads says that the index is going
// to be read through it, which makes each change dearer.
func (x *Index) NewBatch(reads bool) *IndexBatch {
	if reads {
		return &IndexBatch{x: x, b: x.inst.DB().NewIndexedBatch(), indexed: true}
	}
	return &IndexBatch{x: x, b: x.inst.DB().NewBatch()}
}

// Iterate returns an iterator over the index as it is with the changes of the
// batch so far, which was made for that.
func (b *IndexBatch) Iterate(lo, hi []byte) (*IndexIterator, error) {
	return b.x.newIterator(b.b, lo, hi)
}

// Set gives a key a value.
func (b *IndexBatch) Set(key, value []byte) { _ = b.b.Set(key, value, nil) } // fails with a batch that is too large only, as Commit does

// Rewrite is Set for a key that is written again and again.
func (b *IndexBatch) Rewrite(key, value []byte) {
	b.x.rewritten.Wrote(key)
	b.Set(key, value)
}

// Merge appends to the value of a key; see Options.JoinIndex.
func (b *IndexBatch) Merge(key, operand []byte) { _ = b.b.Merge(key, operand, nil) } // as Set

// Delete removes a key.
func (b *IndexBatch) Delete(key []byte) { _ = b.b.Delete(key, nil) }

// DeleteRange removes the keys from lo on and below hi.
func (b *IndexBatch) DeleteRange(lo, hi []byte) { _ = b.b.DeleteRange(lo, hi, nil) }

// Len returns the size in bytes.
func (b *IndexBatch) Len() int { return b.b.Len() }

// Commit shows the changes to readers, all at once, and empties the batch. The
// error is fault.InsufficientStorage while there is too little space for indexes.
func (b *IndexBatch) Commit(ctx context.Context) error {
	if err := b.x.writable(ctx, b.b.Len()); err != nil {
		return err
	}
	bytes := b.b.Len()
	b.large = b.large || bytes > small.MaxBytes
	b.x.inst.Unwritten().Committing(bytes)
	b.x.committing.Add(1)
	if bytes >= largeBatch {
		b.x.large.Store(true)
	}
	err := b.b.Commit(pebble.NoSync)
	b.x.inst.Unwritten().Committed(bytes)
	b.x.version.Store(b.x.indexes.versions.Add(1))
	b.x.committing.Add(-1)
	b.b.Reset()
	if failure := b.x.Err(); failure != nil {
		return failure // it may have gone nowhere
	}
	return indexError(err)
}

// Close gives the memory of the batch back: that of a large indexed one to the collector, as views of
// small stores take what other indexed batches had.
func (b *IndexBatch) Close() {
	if !b.indexed || !b.large && b.b.Len() <= small.MaxBytes {
		_ = b.b.Close() // of memory only
	}
}
