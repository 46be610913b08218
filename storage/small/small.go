// Package small keeps stores that are small in one Pebble instance of the node: as the batches
// that were applied to them, under the name of the store. A store of its own has six files, and
// opening it costs milliseconds; here it costs a key per batch, and all of them share one log.
//
// A small store is read from memory: its batches are put together in a View when it is opened.
package small

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/fault"
	"divan/storage/instance"
)

const (
	// MaxBytes is about what the batches of a small store have together at most. Each batch makes the
	// view anew, so that this and MaxBatches bound what a write costs.
	MaxBytes = 16 << 10
	// MaxBatches is how many batches a small store has until they are put together.
	MaxBatches = 16
)

// Kind is that of the instance. Damage in it is that of the store that is read, not of all.
func Kind() instance.Kind {
	return instance.Kind{Log: true, Shared: true, TableEnd: func([]byte) []byte { return nil }}
}

// Keys are the UUID of a store and the number of a batch, from 1 on. The value at number 0 says that
// the store is here, so that one of which nothing is left is not taken for an empty one, and
// is the number of the first batch that there is: those before are part of it.
const keyLen = 16 + 8

func keyOf(store [16]byte, batch uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, keyLen+1), store[:]...), batch)
}

// Add has a store be here, without a batch.
func Add(b *pebble.Batch, store [16]byte) error { return setFirst(b, store, 1) }

func setFirst(b *pebble.Batch, store [16]byte, first uint64) error {
	return b.Set(keyOf(store, 0), firstIs(first), nil)
}

// firstIs is the value at number 0.
func firstIs(first uint64) []byte { return binary.BigEndian.AppendUint64(nil, first) }

// Put adds the batch of a store with that number.
func Put(b *pebble.Batch, store [16]byte, number uint64, batch *pebble.Batch) error {
	return b.Set(keyOf(store, number), batch.Repr(), nil)
}

// Join puts the batches of a store together: whole, which holds their result, takes the place of
// all that a view has.
func Join(b *pebble.Batch, store [16]byte, v *View, whole *pebble.Batch) error {
	for n := v.first; n < v.last; n++ {
		if err := b.Delete(keyOf(store, n), nil); err != nil {
			return err
		}
	}
	return errors.Join(setFirst(b, store, v.last), Put(b, store, v.last, whole))
}

// Remove deletes all that is here of a store. Each key is deleted by itself: a reader cuts all ranges
// that are deleted into pieces, and there may be one for each database. Only where a key cannot be
// read the range is.
func Remove(r pebble.Reader, b *pebble.Batch, store [16]byte) error {
	err := each(r, store, func(key []byte, _ uint64, _ []byte) error { return b.Delete(key, nil) })
	if unreadable(err) {
		lo, hi := Bounds(store)
		return b.DeleteRange(lo, hi, nil)
	}
	return err
}

// Has reports whether a store is here, as far as its first key tells.
func Has(r pebble.Reader, store [16]byte) (bool, error) {
	_, closer, err := r.Get(keyOf(store, 0))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, readError(err)
	}
	return true, closer.Close()
}

// Size returns how many bytes there are of a store, and whether it is here.
func Size(r pebble.Reader, store [16]byte) (size int64, there bool, err error) {
	err = each(r, store, func(key []byte, _ uint64, batch []byte) error {
		there = true
		size += int64(len(key) + len(batch))
		return nil
	})
	return size, there, err
}

// Read returns what a store holds, nil when there was no batch, and whether it is here. empty is an
// instance without a key, which the view reads from too. The error is fault.Corruption when a
// batch is missing or damaged.
func Read(r pebble.Reader, empty *pebble.DB, store [16]byte) (v *View, there bool, err error) {
	all := empty.NewBatch()
	first, next := uint64(0), uint64(0)
	err = each(r, store, func(_ []byte, number uint64, value []byte) error {
		if number == 0 {
			if len(value) != 8 {
				return corrupt(errors.New("malformed number of the first batch"))
			}
			there, first = true, binary.BigEndian.Uint64(value)
			next = first
			return nil
		}
		if number != next || !there {
			return corrupt(fmt.Errorf("batch %d is missing", next))
		}
		next++
		return appendRepr(all, empty, value)
	})
	switch {
	case err != nil:
	case first > 1 && next == first:
		err = corrupt(fmt.Errorf("batch %d is missing", first))
	case next > first:
		v, err = (*View)(nil).With(empty, all, next-1)
	}
	if v != nil {
		v.first = first
	}
	return v, there, errors.Join(err, all.Close())
}

// appendRepr adds a batch that was read.
func appendRepr(all *pebble.Batch, empty *pebble.DB, repr []byte) error {
	b := empty.NewBatch()
	err := b.SetRepr(bytes.Clone(repr))
	n := uint32(0)
	for r := b.Reader(); err == nil && len(r) > 0; n++ {
		var kind pebble.InternalKeyKind
		kind, _, _, _, err = r.Next()
		switch kind {
		case pebble.InternalKeyKindSet, pebble.InternalKeyKindDelete, pebble.InternalKeyKindMerge, pebble.InternalKeyKindRangeDelete,
			pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
		default:
			err = errors.Join(err, fmt.Errorf("operation of kind %d", kind))
		}
	}
	if err == nil && n != b.Count() {
		err = fmt.Errorf("%d operations, %d are told", n, b.Count())
	}
	if err == nil {
		err = all.Apply(b, nil)
	}
	if err = errors.Join(err, b.Close()); err != nil {
		return corrupt(err)
	}
	return nil
}

func corrupt(err error) error {
	return fault.Wrap(fault.Corruption, "What is stored of a small shard is damaged.", err)
}

// Bounds returns from where to where the keys of a store are.
func Bounds(store [16]byte) (lo, hi []byte) {
	return keyOf(store, 0), append(keyOf(store, math.MaxUint64), 0)
}

// each calls fn with the keys of a store, in the order of their numbers. The error is fault.Corruption
// where one is damaged.
func each(r pebble.Reader, store [16]byte, fn func(key []byte, number uint64, value []byte) error) error {
	lo, hi := Bounds(store)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return readError(err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		key := it.Key()
		if len(key) != keyLen {
			err = corrupt(errors.New("malformed key"))
			break
		}
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = fn(key, binary.BigEndian.Uint64(key[len(store):]), value)
		}
	}
	return readError(errors.Join(err, it.Error(), it.Close()))
}

// unreadable reports whether files are damaged, or the disk does not read them.
func unreadable(err error) bool {
	return fault.Is(err, fault.Corruption) || errors.Is(err, syscall.EIO)
}

func readError(err error) error {
	switch {
	case err == nil:
		return nil
	case pebble.IsCorruptionError(err) && !fault.Is(err, fault.Corruption):
		return corrupt(err)
	case errors.Is(err, syscall.EIO) && fault.KindOf(err) == fault.Internal:
		return fault.Wrap(fault.Unavailable, "The disk does not read a file of small shards.", err)
	default:
		return fmt.Errorf("read small store: %w", err)
	}
}
