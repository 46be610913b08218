package small

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"divan/storage/fault"
)

// All are the bounds of all keys.
func All() (lo, hi []byte) {
	hi = make([]byte, keyLen+1)
	for i := range hi {
		hi[i] = 0xff
	}
	return []byte{0}, hi
}

// Rewrite leaves in an instance what can be read of the given stores, which are in the order of their names, in
// a new table, and nothing else: files that are damaged are not used any more. Nothing is left of the
// stores that are returned. path is where the table is made; it may be there after an error.
func Rewrite(ctx context.Context, db *pebble.DB, path string, w *sstable.Writer, stores [][16]byte) (damaged [][16]byte, err error) {
	damaged, n, err := readable(db, w, stores)
	if err = errors.Join(err, w.Close()); err == nil {
		lo, hi := All()
		if span := (pebble.KeyRange{Start: lo, End: hi}); n > 0 {
			_, err = db.IngestAndExcise(ctx, []string{path}, nil, nil, span)
		} else {
			err = db.Excise(ctx, span)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("rewrite small stores: %w", err)
	}
	return damaged, nil
}

// readable writes what can be read of the stores into a table, and returns how many keys there are, and the stores
// of which something cannot be read.
func readable(r pebble.Reader, w *sstable.Writer, stores [][16]byte) (damaged [][16]byte, n int, err error) {
	type pair struct{ key, value []byte }
	for _, store := range stores {
		var all []pair
		err := each(r, store, func(key []byte, _ uint64, value []byte) error {
			all = append(all, pair{append([]byte(nil), key...), append([]byte(nil), value...)})
			return nil
		})
		if fault.Is(err, fault.Corruption) {
			damaged, err, all = append(damaged, store), nil, nil
		}
		for _, p := range all {
			if err = w.Set(p.key, p.value); err != nil {
				break
			}
		}
		if err != nil {
			return nil, 0, err
		}
		n += len(all)
	}
	return damaged, n, nil
}
