package blocks

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/format"
	"divan/storage/keyspace"
	"divan/storage/records"
)

// ReadLow reads the low blocks of the top-level block that begins at border top. The next one begins at next; "":
// there is none.
func ReadLow(r pebble.Reader, top, next string) (*Low, error) {
	end := keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow+1, "")
	if next != "" {
		end = keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow, next)
	}
	low := &Low{Borders: []string{top}, Sums: make([]format.Sums, 1)}
	err := records.Each(r, keyspace.AppendAgg(nil, keyspace.AggDocs, keyspace.LevelLow, top), end, func(key, value []byte) error {
		s, err := format.DecodeSums(value)
		if border := string(keyspace.AggBorder(key)); border == top {
			low.Sums[0] = s
		} else {
			low.Borders, low.Sums = append(low.Borders, border), append(low.Sums, s)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read aggregates: %w", err)
	}
	return low, nil
}
