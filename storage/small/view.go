package small

import (
	"context"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// View is the content of a small store at one moment, in memory. It does not change, and is safe
// for concurrent use. It is a pebble.Reader that needs no Close. A nil view holds nothing.
type View struct {
	batches     *pebble.Batch // indexed; all of them, in their order
	first, last uint64        // their numbers
}

// With returns what the store holds after one more batch, which has that number.
func (v *View) With(empty *pebble.DB, batch *pebble.Batch, number uint64) (*View, error) {
	next := &View{batches: empty.NewIndexedBatchWithSize(v.Len() + batch.Len()), first: number, last: number}
	if v != nil {
		next.first = v.first
		if err := next.batches.Apply(v.batches, nil); err != nil {
			return nil, fmt.Errorf("copy view: %w", err)
		}
	}
	if err := next.batches.Apply(batch, nil); err != nil {
		return nil, fmt.Errorf("apply to view: %w", err)
	}
	// The first iterator prepares what others read: ranges that are deleted.
	it, err := next.batches.NewIter(nil)
	if err == nil {
		err = it.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("read view: %w", err)
	}
	return next, nil
}

// Joined returns a batch that leaves what all of them leave, and the view that has it in their place.
// That is smaller where keys were written again or deleted.
func (v *View) Joined(empty *pebble.DB) (*pebble.Batch, *View, error) {
	whole := empty.NewBatch()
	it, err := v.NewIter(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("read view: %w", err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = whole.Set(it.Key(), value, nil)
		}
	}
	if e := it.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, nil, fmt.Errorf("join view: %w", err)
	}
	next, err := (*View)(nil).With(empty, whole, v.last)
	return whole, next, err
}

// Fits reports whether a store that holds this is small with so many bytes more, if need be after its batches are
// put together, which join asks for: then whole and joined are as Joined returns them. One that is
// written at its limit is not put together for each batch.
func (v *View) Fits(empty *pebble.DB, more int, join bool) (fits bool, whole *pebble.Batch, joined *View, err error) {
	large := v.Len()+more > MaxBytes
	if v == nil || !large && !join && v.Batches() < MaxBatches {
		return !large, nil, nil, nil
	}
	if whole, joined, err = v.Joined(empty); err != nil {
		return false, nil, nil, err
	}
	limit := MaxBytes
	if large {
		limit = limit * 3 / 4
	}
	if joined.Len()+more > limit {
		return false, nil, nil, whole.Close()
	}
	return true, whole, joined, nil
}

// Len returns the bytes of all batches.
func (v *View) Len() int {
	if v == nil {
		return 0
	}
	return v.batches.Len()
}

// Weight returns about what an open store with this view takes in memory, in bytes and in steps, so that
// few writes change it.
func (v *View) Weight() int64 {
	const store, step = 8 << 10, 4 << 10
	return (store + 2*int64(v.Len()) + step - 1) / step * step
}

// Batches returns how many there are.
func (v *View) Batches() uint64 {
	if v == nil {
		return 0
	}
	return v.last - v.first + 1
}

// AddTo adds all that the store holds to a batch of another instance.
func (v *View) AddTo(b *pebble.Batch) error { return b.Apply(v.batches, nil) }

// Get implements pebble.Reader.
func (v *View) Get(key []byte) (value []byte, closer io.Closer, err error) { return v.batches.Get(key) }

// NewIter implements pebble.Reader.
func (v *View) NewIter(o *pebble.IterOptions) (*pebble.Iterator, error) { return v.batches.NewIter(o) }

// NewIterWithContext implements pebble.Reader.
func (v *View) NewIterWithContext(ctx context.Context, o *pebble.IterOptions) (*pebble.Iterator, error) {
	return v.batches.NewIterWithContext(ctx, o)
}

// Close implements pebble.Reader.
func (v *View) Close() error { return nil }

var _ pebble.Reader = (*View)(nil)
