package small

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

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

// Rewrite writes the files of an instance anew, of which some are damaged.
type Rewrite struct {
	FS    vfs.FS
	Dir   string // of the instance
	Aside string // where its files of before are kept, a number after it
	Table sstable.WriterOptions
}

// Run leaves in the instance what can be read of the given stores, which are in the order of their names, in
// a new table, and nothing else: files that are damaged are not used any more. Nothing is left of the
// stores that are returned as damaged. All that there was is in the directory that is returned as kept, which
// can be opened as the instance could.
func (r Rewrite) Run(ctx context.Context, db *pebble.DB, stores [][16]byte) (damaged [][16]byte, kept string, err error) {
	path := r.FS.PathJoin(r.Dir, "rewrite")
	damaged, empty, err := r.table(db, path, stores)
	if err == nil {
		if kept, err = r.keep(db); err == nil {
			err = replace(ctx, db, path, empty)
		}
	}
	_ = r.FS.Remove(path) // it has another name, or is not used
	if err != nil {
		return nil, kept, fmt.Errorf("rewrite small stores: %w", err)
	}
	return damaged, kept, nil
}

// table makes a table of what can be read of the stores.
func (r Rewrite) table(db *pebble.DB, path string, stores [][16]byte) (damaged [][16]byte, empty bool, err error) {
	f, err := r.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, false, err
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), r.Table)
	damaged, n, err := readable(db, w, stores)
	return damaged, n == 0, errors.Join(err, w.Close())
}

// keep makes a directory of links to all files that the instance has, durably.
func (r Rewrite) keep(db *pebble.DB) (dir string, err error) {
	for i := 1; ; i++ {
		dir = r.Aside + strconv.Itoa(i)
		if err = db.Checkpoint(dir); !errors.Is(err, os.ErrExist) {
			return dir, err
		}
	}
}

// replace has the table be all that the instance has.
func replace(ctx context.Context, db *pebble.DB, path string, empty bool) error {
	lo, hi := All()
	span := pebble.KeyRange{Start: lo, End: hi}
	if empty {
		return db.Excise(ctx, span)
	}
	_, err := db.IngestAndExcise(ctx, []string{path}, nil, nil, span)
	return err
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
