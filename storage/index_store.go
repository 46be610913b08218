package storage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/records"
	"divan/storage/rewritten"
)

// Index is an open store for something that is derived from a shard copy: keys
// and values that mean nothing here. It belongs to one copy, by its UUID, and has
// a name among the indexes of that copy, its signature.
//
// Invariants:
//
//	X1  there is no log: a crash leaves a prefix of the committed batches, and
//	    everything before the last Flush. What an index reflects is in the batch
//	    with its keys, so that it goes on from there.
//	X2  an index that cannot be opened, or belongs to another copy, is set aside
//	    and begins empty.
//	X3  an index goes with its copy.
//
// Reads are safe for concurrent use; batches belong to one goroutine at a time.
type Index struct {
	handle
	indexes *Indexes
	opening uint64 // see Opening

	// version is that of the content, changed by each commit; committing are the
	// commits that run. See IndexSnapshot.Version.
	version    atomic.Uint64
	committing atomic.Int32
	large      atomic.Bool // a batch that the engine may hold still; see Settle
	rewritten  *rewritten.Keys
}

// Opening names this opening of the index among all of the process: what is known of
// one need not hold for the next.
func (x *Index) Opening() uint64 { return x.opening }

// close makes what was committed durable first. One whose files turned out to be
// damaged begins anew when it is opened again.
func (x *Index) close(dropped bool) error {
	var err error
	if !dropped && x.Err() == nil && !x.inst.ReadOnly() {
		err = x.Flush()
	}
	err = errors.Join(err, x.inst.Close())
	if !dropped && x.inst.Damaged() {
		err = errors.Join(err, x.indexes.staging.add(x.name))
	}
	return err
}

func (x *Index) remove() error {
	return x.indexes.staging.add(x.name)
}

// Discard drops the index at once: its content turned out to be damaged. A
// caller that acquires it from now on gets an empty one; fault.Unavailable tells
// a caller that has it already to acquire it again.
func (x *Index) Discard() error {
	return x.cache.displace(&x.handle, func() error {
		_ = x.inst.Fail(errors.New("the index is set aside")) // nothing more is written
		return x.indexes.staging.add(x.name)
	})
}

// Sizes returns the bytes of the index, and those in use: what is left of it behind the
// next compaction.
func (x *Index) Sizes() (file, active int64, err error) {
	if file, err = x.FileSize(); err != nil {
		return 0, 0, err
	}
	used, err := x.inst.DB().EstimateDiskUsage([]byte{0}, []byte{0xff})
	return file, int64(used) + x.inst.Unwritten().Bytes(), indexError(err)
}

// Flush makes durable what was committed until now.
func (x *Index) Flush() error {
	if err := x.Err(); err != nil || x.inst.ReadOnly() {
		return err
	}
	return indexError(x.inst.Flush())
}

// largeBatch is from how many bytes on the engine takes a batch as it is, in the place
// of a memtable.
const largeBatch = 4 << 20

// Settle gives the memory of large batches back. The engine lets go of the last ones
// only when others have come after them: the array of its queue of memtables refers
// to them until it is full, which is twice as many bytes as the batch for as long as
// the index is open and nothing is written. While the disk has too little space nothing
// is done.
func (x *Index) Settle() error {
	if !x.large.Load() || x.env.space.IndexErr(0) != nil {
		return nil //nolint:nilerr // it is done another time
	}
	x.large.Store(false)
	for range 2 { // memtables, which need another array
		if err := x.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Compact compacts the files.
func (x *Index) Compact(ctx context.Context) error {
	if err := x.Err(); err != nil {
		return err
	}
	if err := x.env.space.IndexErr(0); err != nil {
		return err
	}
	if x.inst.ReadOnly() {
		return diskspace.ErrDiskFull()
	}
	return indexError(x.inst.Compact(ctx, nil, []byte{0}, []byte{0xff}))
}

// writable returns when the index takes changes, or why it does not; see
// Store.writable.
func (x *Index) writable(ctx context.Context, bytes int) error {
	if err := x.Err(); err != nil {
		return err
	}
	if err := x.env.space.IndexErr(int64(bytes)); err != nil {
		return err
	}
	if x.inst.ReadOnly() {
		return x.inst.Fail(errOpenedForReading)
	}
	if err := x.inst.Admit(ctx.Done()); err != nil {
		return err
	}
	return ctx.Err()
}

// Get is IndexSnapshot.Get as of the last committed batch.
func (x *Index) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if err := x.Err(); err != nil {
		return dst, false, err
	}
	value, ok, err = records.Append(x.inst.DB(), dst, key)
	return value, ok, indexError(err)
}

func (x *Index) newIterator(r pebble.Reader, lo, hi []byte) (*IndexIterator, error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, indexError(err)
	}
	return &IndexIterator{it: it, hot: x.rewritten.Hot()}, nil
}

// indexError marks what Pebble says about damaged files.
func indexError(err error) error {
	switch {
	case err == nil:
		return nil
	case pebble.IsCorruptionError(err):
		return fault.Wrap(fault.Corruption, "The index is damaged.", err)
	}
	return fmt.Errorf("index: %w", err)
}
