package storage

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// The stored values that have a meaning outside of this package.
type (
	// Change is one entry of the sequence: the newest edit of a document.
	Change = format.Change
	// Leaf is one leaf revision in a sequence entry.
	Leaf = format.Leaf
	// Counters are the totals of a store as of one batch.
	Counters = format.Counters
	// Purge is one entry of the purge log.
	Purge = format.Purge
	// Sums are totals over a range of documents.
	Sums = format.Sums
	// Origin names a store that another one continues.
	Origin = format.Origin
)

func readCounters(r pebble.Reader) (uint64, Counters, error) {
	value, closer, err := r.Get(keyspace.AppendMeta(nil, keyspace.MetaCounters))
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, Counters{}, nil
	}
	if err != nil {
		return 0, Counters{}, fmt.Errorf("read counters: %w", err)
	}
	batch, c, err := format.DecodeCounters(value)
	return batch, c, errors.Join(err, closer.Close())
}

func readOrigins(r pebble.Reader) ([]Origin, error) {
	value, ok, err := records.Value(r, keyspace.AppendMeta(nil, keyspace.MetaOrigins))
	if err != nil || !ok {
		return nil, err
	}
	return format.DecodeOrigins(value)
}
