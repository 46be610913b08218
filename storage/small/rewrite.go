package small

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
	"divan/storage/instance"
)

// All are the bounds of all keys.
func All() (lo, hi []byte) {
	hi = make([]byte, keyLen+1)
	for i := range hi {
		hi[i] = 0xff
	}
	return []byte{0}, hi
}

// Slices are n ranges of keys, which together have all.
func Slices(n int) []pebble.KeyRange {
	lo, hi := All()
	out := []pebble.KeyRange{{Start: lo, End: hi}}
	for i := 1; i < n; i++ { // names of stores are random
		at := binary.BigEndian.AppendUint16(nil, uint16(i*(1<<16)/n))
		out[i-1].End = at
		out = append(out, pebble.KeyRange{Start: at, End: hi})
	}
	return out
}

// Rewrite writes the files of an instance anew, of which some are damaged.
type Rewrite struct {
	FS    vfs.FS
	Dir   string // of the instance
	Aside string // where its files of before are kept, a number after it
	Table sstable.WriterOptions
	Empty *pebble.DB   // without a key
	Err   func() error // why the instance has stopped
	Mends func() bool  // reports whether a damaged table may still be set right: then Run fails
	// Certain takes what the disk does not read for damaged. Else that is an error: the disk may come back.
	Certain bool
	Unread  bool // set by Run: there was something that the disk does not read
	// Held returns what a store that is open shows, which is durable, nil: nothing.
	Held func(store [16]byte) (v *View, open bool)
}

// Run leaves in the instance what can be read of the given stores, which are in the order of their names, in
// new tables, and nothing else: files that are damaged are not used any more. Of a store that is open all is
// there, as it is in memory. Nothing is left of the stores that are returned as damaged. All that there was is
// in the directory that is returned as kept, which can be opened as the instance could.
func (r *Rewrite) Run(ctx context.Context, db *pebble.DB, stores [][16]byte) (damaged [][16]byte, kept string, err error) {
	out := tables{fs: r.FS, path: r.FS.PathJoin(r.Dir, rewriting), options: r.Table}
	defer func() { RemoveLeft(r.FS, r.Dir, out.names()) }() // they have other names, or are not used
	damaged, err = r.readable(ctx, db, &out, stores)
	if err == nil && r.Mends() {
		err = errors.New("a damaged file that was met meanwhile is set right first")
	}
	if err = errors.Join(err, out.end()); err == nil {
		kept, err = r.keep(db)
	}
	if err == nil {
		if err = replace(ctx, db, out.paths); err != nil && r.Err() == nil {
			err = errors.Join(err, r.FS.RemoveAll(kept))
		}
		err = errors.Join(err, r.Err())
	}
	if err != nil {
		return nil, kept, fmt.Errorf("rewrite small stores: %w", err)
	}
	return damaged, kept, nil
}

// keep makes a directory of links to all files that the instance has, durably. What a crash leaves of
// it has another name.
func (r *Rewrite) keep(db *pebble.DB) (dir string, err error) {
	const part = "part"
	if err = r.FS.RemoveAll(r.Aside + part); err == nil {
		err = errors.Join(db.Checkpoint(r.Aside+part), r.Err())
	}
	for i := 1; err == nil; i++ {
		dir = r.Aside + strconv.Itoa(i)
		if _, err = r.FS.Stat(dir); errors.Is(err, os.ErrNotExist) {
			err = r.FS.Rename(r.Aside+part, dir)
			break
		}
	}
	if err == nil {
		err = instance.SyncDir(r.FS, r.FS.PathDir(dir))
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("keep what there was: %w", err), r.FS.RemoveAll(r.Aside+part))
	}
	return dir, nil
}

// replace has the tables be all that the instance has.
func replace(ctx context.Context, db *pebble.DB, paths []string) error {
	lo, hi := All()
	span := pebble.KeyRange{Start: lo, End: hi}
	if len(paths) == 0 {
		return db.Excise(ctx, span)
	}
	_, err := db.IngestAndExcise(ctx, paths, nil, nil, span)
	return err
}

// readable writes what can be read of the stores into tables, and returns the stores of which something
// cannot be read.
func (r *Rewrite) readable(ctx context.Context, from pebble.Reader, out *tables, stores [][16]byte) (damaged [][16]byte, err error) {
	for _, store := range stores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all, err := r.pairs(from, store)
		if fault.Is(err, fault.Corruption) || r.Certain && unreadable(err) {
			damaged, all, err = append(damaged, store), nil, nil
		}
		r.Unread = r.Unread || unreadable(err)
		if err = errors.Join(err, out.add(all)); err != nil {
			return nil, err
		}
	}
	return damaged, nil
}

// pairs returns what a store has: as it is in memory where it is open.
func (r *Rewrite) pairs(from pebble.Reader, store [16]byte) (all []pair, err error) {
	if v, open := r.Held(store); open {
		return v.pairs(r.Empty, store)
	}
	err = each(from, store, func(key []byte, _ uint64, value []byte) error {
		all = append(all, pair{bytes.Clone(key), bytes.Clone(value)})
		return nil
	})
	return all, err
}

// pair is a key of the instance with its value.
type pair struct{ key, value []byte }

// pairs returns what a store has in the instance that shows this: one batch.
func (v *View) pairs(empty *pebble.DB, store [16]byte) ([]pair, error) {
	if v == nil {
		return []pair{{keyOf(store, 0), firstIs(1)}}, nil
	}
	whole, _, err := v.Joined(empty)
	if err != nil {
		return nil, err
	}
	return []pair{{keyOf(store, 0), firstIs(v.last)}, {keyOf(store, v.last), bytes.Clone(whole.Repr())}}, whole.Close()
}
