package records

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/format"
	"divan/storage/keyspace"
)

// Counters returns the totals of a store, and the number of the batch that left them, 0 when there was none.
func Counters(r pebble.Reader) (batch uint64, c format.Counters, err error) {
	value, closer, err := r.Get(keyspace.AppendMeta(nil, keyspace.MetaCounters))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, format.Counters{}, nil
	}
	if err != nil {
		return 0, format.Counters{}, fmt.Errorf("read counters: %w", err)
	}
	batch, c, err = format.DecodeCounters(value)
	return batch, c, errors.Join(err, closer.Close())
}

// Origins returns the stores that a store continues.
func Origins(r pebble.Reader) ([]format.Origin, error) {
	value, ok, err := Value(r, keyspace.AppendMeta(nil, keyspace.MetaOrigins))
	if err != nil || !ok {
		return nil, err
	}
	return format.DecodeOrigins(value)
}
