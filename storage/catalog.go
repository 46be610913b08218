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

// Catalog tells which stores are on the disk, open or not, and what can be said of them without opening
// them. It is safe for concurrent use.
//
// Invariant E1: a directory is a store when it holds the file that names it, which is
// there or not; a store that is dropped leaves its place whole.
type Catalog struct {
	env     *environment
	cache   *storeCache
	small   *smallHost
	indexes *Indexes
	lost    *lostContents
}

// Names returns the names of all stores on disk, sorted. It reads the
// directories, so its cost is that of their number.
func (c *Catalog) Names() ([]string, error) {
	stores, err := c.Stored()
	return namesOf(stores), err
}

// Stored is Names with what the stores say which copies they are.
func (c *Catalog) Stored() ([]paths.Store, error) {
	stores, err := c.env.dirs.Stores(shardsDir, OrphanedDir)
	if err != nil {
		return nil, err
	}
	stores = slices.DeleteFunc(stores, func(s paths.Store) bool {
		_, dropped := c.cache.lookup(s.Name)
		return dropped
	})
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

// Orphans returns the names of the directories in OrphanedDir that are stores.
func (c *Catalog) Orphans() ([]string, error) {
	stores, err := c.env.dirs.Stores(OrphanedDir, "")
	return namesOf(stores), err
}

// Has reports whether there is a store of that name, open or not. One that
// cannot be read is there as well, but for one that has lost what it held.
func (c *Catalog) Has(name string) bool {
	if open, dropped := c.cache.lookup(name); open != nil {
		return !dropped
	}
	if c.lost.has(name) {
		return false
	}
	files, err := c.env.o.FS.List(c.env.path(name))
	if err == nil {
		_, err = identity.Find(files)
		return !fault.Is(err, fault.NoCopy)
	}
	return !errors.Is(err, os.ErrNotExist)
}

// CopyID is Store.CopyID of a store that need not be open.
func (c *Catalog) CopyID(name string) (uint64, error) {
	id, _, err := c.env.readIdentity(name)
	if err == nil {
		err = id.Check(name)
	}
	return id.Copy, err
}

// DiskUsage returns the bytes that a store and its indexes have on disk, open or not. The error
// is fault.NoCopy when there is no such store.
func (c *Catalog) DiskUsage(name string) (int64, error) {
	total, err := c.FileSize(name)
	if err != nil {
		return 0, err
	}
	signatures, err := c.indexes.Signatures(name)
	for _, signature := range signatures {
		dir := indexDir(name) + "/" + signature
		files, err := c.env.o.FS.List(c.env.path(dir))
		if err != nil {
			continue // it was dropped meanwhile
		}
		total += c.env.dirs.Size(dir, files)
	}
	return total, err
}

// FileSize returns the bytes that a store has on disk, open or not. The error
// is fault.NoCopy when there is no such store.
func (c *Catalog) FileSize(name string) (int64, error) {
	if m := c.cache.pinOpen(name); m != nil {
		defer c.cache.release(m.base())
		if s, ok := m.(*Store); ok {
			return s.FileSize()
		}
		return m.base().FileSize()
	}
	id, files, err := identity.Read(c.env.o.FS, c.env.path(name))
	if err != nil {
		return 0, noStore()
	}
	bytes, err := c.small.size(&id)
	return c.env.dirs.Size(name, files) + bytes, err
}
