package records

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Each calls fn for every entry between two keys until it fails. key and value
// are valid during the call.
func Each(r pebble.Reader, lo, hi []byte, fn func(key, value []byte) error) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return fmt.Errorf("iterate: %w", err)
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		if value, err = it.ValueAndErr(); err == nil {
			err = fn(it.Key(), value)
		}
	}
	return errors.Join(err, it.Error(), it.Close())
}

// Append appends the value of a key, when there is one.
func Append(r pebble.Reader, dst, key []byte) (value []byte, ok bool, err error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	return append(dst, v...), true, closer.Close()
}
