package storage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/instance"
	"divan/storage/paths"
	"divan/storage/rewritten"
)

// Indexes are the indexes of all stores of an engine: it opens, makes and drops them. It is safe for
// concurrent use.
type Indexes struct {
	env      *environment
	cache    *storeCache
	staging  *staging
	versions atomic.Uint64 // given to contents
}

// indexPrefix begins the name of the file that makes a directory an index:
// INDEX-1-<UUID of the copy>. The number is the version of what programs put into
// indexes: raising it has every index built anew when it is next opened.
const indexPrefix = indexMarker + "1-"

// indexMarker begins it in every version.
const indexMarker = "INDEX-"

// indexDir is where the indexes of a copy are.
func indexDir(store string) string {
	return indexesDir + "/" + strings.TrimPrefix(store, shardsDir+"/")
}

// Acquire opens an index of a copy, empty when there is none, and pins it
// until Release. The copy must stay pinned until then. An index that was
// dropped while it was in use gives fault.Unavailable until its last pin is gone.
func (x *Indexes) Acquire(s *Store, signature string) (*Index, error) {
	name := indexDir(s.name) + "/" + signature
	if !paths.Valid(name) || strings.Contains(signature, "/") {
		return nil, fmt.Errorf("index name %q is no path below the data directory", name)
	}
	m, err := x.cache.acquire(name, func(name string) (member, error) { return x.open(name, s.id.UUID) })
	switch {
	case fault.Is(err, fault.NoCopy):
		return nil, fault.New(fault.Unavailable, "The index is being removed.")
	case err != nil:
		return nil, err
	}
	return m.(*Index), nil
}

// Release takes back one pin of Acquire.
func (x *Indexes) Release(index *Index) { x.cache.release(&index.handle) }

// open opens what is there, or begins anew when that cannot be.
func (x *Indexes) open(name string, copyUUID [16]byte) (member, error) {
	path, identity := x.env.path(name), indexPrefix+hex.EncodeToString(copyUUID[:])
	files, err := x.env.o.FS.List(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, instance.DiskError("list index", err)
	case slices.Contains(files, identity) && instance.IsMade(files):
		index, err := x.openInstance(name)
		if !fault.Is(err, fault.Corruption) && !errors.Is(err, os.ErrNotExist) {
			return index, err
		}
		x.env.log.Warn("index is damaged and begins anew", zap.String("store", name), zap.Error(err))
		fallthrough
	default:
		if slices.ContainsFunc(files, otherVersion) {
			x.env.log.Info("index is of another version of the program and begins anew", zap.String("store", name))
		}
		if err := x.staging.add(name); err != nil {
			return nil, err
		}
	}
	if x.env.space.Err() != nil {
		return nil, fault.Wrap(fault.InsufficientStorage, "No space left on the disk.", errNotMade)
	}
	if err := x.make(path, identity); err != nil {
		return nil, instance.DiskError("make index", err)
	}
	return x.openInstance(name)
}

// errNotMade says that there is no such index, and no space to make one: it would be opened
// for reading, and there is nothing to read.
var errNotMade = errors.New("there is no space to make the index")

// otherVersion reports whether a file makes its directory an index of another
// version.
func otherVersion(file string) bool {
	return strings.HasPrefix(file, indexMarker) && !strings.HasPrefix(file, indexPrefix)
}

// make makes the directory and all above it durable; Pebble does the same
// for what is in it. One above it may have gone with an earlier copy, so that
// what dirs remembers does not count.
func (x *Indexes) make(path, identity string) error {
	defer x.env.dirs.Hold()()
	if err := x.env.o.FS.MkdirAll(path, 0o755); err != nil {
		return err
	}
	for _, file := range [...]string{identity, formatMarker + instance.PebbleFormat.String()} {
		if err := x.env.touch(x.env.o.FS.PathJoin(path, file)); err != nil {
			return err
		}
	}
	for dir := path; dir != x.env.path(); {
		dir = x.env.o.FS.PathDir(dir)
		if err := instance.SyncDir(x.env.o.FS, dir); err != nil {
			return err
		}
	}
	return nil
}

func (x *Indexes) openInstance(name string) (member, error) {
	index := &Index{handle: x.cache.newHandle(name, x.cache.failures.readsOnly(name)), indexes: x, rewritten: rewritten.New()}
	kind := instance.Kind{Merger: format.IndexMerger(x.env.o.JoinIndex), Derived: true, TableEnd: func(start []byte) []byte {
		if len(start) == 0 || start[0] == 0xff {
			return nil
		}
		return []byte{start[0] + 1}
	}}
	if err := index.inst.Open(kind, func(*pebble.DB) error { return nil }); err != nil {
		return nil, errors.Join(err, index.inst.Close())
	}
	index.opening = x.versions.Add(1)
	index.version.Store(index.opening)
	x.cache.countOpen(&index.handle, 0)
	return index, nil
}

// Signatures returns the names of the indexes of a copy that are on disk,
// sorted.
func (x *Indexes) Signatures(store string) ([]string, error) {
	names, err := x.env.o.FS.List(x.env.path(indexDir(store)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list indexes: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Drop removes an index of a copy as Engine.Drop does a store. The error is
// fault.NoCopy when there is none.
func (x *Indexes) Drop(store, signature string) error {
	return x.cache.drop(indexDir(store)+"/"+signature, func(name string) error {
		if _, err := x.env.o.FS.Stat(x.env.path(name)); err != nil {
			return noStore()
		}
		return x.staging.add(name)
	})
}

// dropAll drops all indexes of a store that can no longer be acquired.
func (x *Indexes) dropAll(store string) error {
	dir := indexDir(store)
	x.cache.dropBelow(dir)
	if _, err := x.env.o.FS.Stat(x.env.path(dir)); err != nil {
		return nil //nolint:nilerr // it never had one
	}
	if err := x.staging.add(dir); err != nil {
		return err
	}
	x.env.dirs.RemoveParents(dir)
	return nil
}
