package storage

import (
	"errors"
	"os"
	"slices"
	"strings"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/paths"
)

// Names inside the data directory.
const (
	shardsDir  = "shards"
	indexesDir = "indexes" // <range>/<database>.<suffix>/<signature> below it
	stagingDir = "staging" // stores that were dropped, to be removed

	madeFile = "made" // which stores were made here and not dropped
)

// formatMarker begins the name of the file that says in which format a store is. A new
// store without it is made in the oldest one and brought up to date step by
// step, with ten files and ten syncs.
const formatMarker = paths.EngineMarker + "000001."

func (e *Engine) path(elem ...string) string {
	return e.dirs.Path(elem...)
}

// Names returns the names of all stores on disk, sorted. It reads the
// directories, so its cost is that of their number.
func (e *Engine) Names() ([]string, error) {
	stores, err := e.Stored()
	return namesOf(stores), err
}

// Stored is Names with what the stores say which copies they are.
func (e *Engine) Stored() ([]paths.Store, error) {
	stores, err := e.dirs.Stores(shardsDir, OrphanedDir)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	stores = slices.DeleteFunc(stores, func(s paths.Store) bool {
		en := e.mu.entries[s.Name]
		return en != nil && en.dropped
	})
	e.mu.Unlock()
	slices.SortFunc(stores, func(a, b paths.Store) int { return strings.Compare(a.Name, b.Name) })
	return stores, nil
}

func namesOf(stores []paths.Store) []string {
	var out []string
	for i := range stores {
		out = append(out, stores[i].Name)
	}
	return out
}

// Has reports whether there is a store of that name, open or not. One that
// cannot be read is there as well, but for one that has lost what it held.
func (e *Engine) Has(name string) bool {
	e.mu.Lock()
	en := e.mu.entries[name]
	known := en != nil && en.busy == nil
	dropped := known && en.dropped
	e.mu.Unlock()
	if known {
		return !dropped
	}
	if e.contents.has(name) {
		return false
	}
	files, err := e.o.FS.List(e.path(name))
	if err == nil {
		_, err = identity.Find(files)
		return !fault.Is(err, fault.NoCopy)
	}
	return !errors.Is(err, os.ErrNotExist)
}

// DiskUsage returns the bytes that a store and its indexes have on disk, open or not. The error
// is fault.NoCopy when there is no such store.
func (e *Engine) DiskUsage(name string) (int64, error) {
	total, err := e.FileSize(name)
	if err != nil {
		return 0, err
	}
	signatures, err := e.Signatures(name)
	for _, signature := range signatures {
		dir := indexDir(name) + "/" + signature
		files, err := e.o.FS.List(e.path(dir))
		if err != nil {
			continue // it was dropped meanwhile
		}
		total += e.dirs.Size(dir, files)
	}
	return total, err
}

// FileSize returns the bytes that a store has on disk, open or not. The error
// is fault.NoCopy when there is no such store.
func (e *Engine) FileSize(name string) (int64, error) {
	e.mu.Lock()
	en := e.mu.entries[name]
	if en != nil && en.busy == nil && !en.dropped && en.store.base().counted {
		e.pinLocked(en)
		e.mu.Unlock()
		defer e.release(en.store.base())
		if s, ok := en.store.(*Store); ok {
			return s.FileSize()
		}
		return en.store.base().FileSize()
	}
	e.mu.Unlock()
	id, files, err := identity.Read(e.o.FS, e.path(name))
	if err != nil {
		return 0, noStore()
	}
	bytes, err := e.smallSize(&id)
	return e.dirs.Size(name, files) + bytes, err
}
