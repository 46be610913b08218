package storage

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"divan/storage/fault"
	"divan/storage/identity"
)

// Names inside the data directory.
const (
	shardsDir  = "shards"
	indexesDir = "indexes" // <range>/<database>.<suffix>/<signature> below it
	stagingDir = "staging" // stores that were dropped, to be removed

	rebuildingDir = "rebuilding" // marks of stores that do not hold yet what they should
	madeFile      = "made"       // which stores were made here and not dropped
)

// formatMarker begins the name of the file that says in which format a store is. A new
// store without it is made in the oldest one and brought up to date step by
// step, with ten files and ten syncs.
const formatMarker = "marker.format-version.000001."

func (e *Engine) path(elem ...string) string {
	return e.o.FS.PathJoin(append([]string{e.o.Dir}, elem...)...)
}

// validName accepts a clean relative path: nothing that leaves the directory.
func validName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.HasPrefix(part, identity.Prefix) {
			return false
		}
	}
	return !strings.ContainsAny(name, "\x00\\")
}

// Names returns the names of all stores on disk, sorted. It reads the
// directories, so its cost is that of their number.
func (e *Engine) Names() ([]string, error) {
	var names []string
	if err := e.walk(shardsDir, &names); err != nil {
		return nil, err
	}
	e.mu.Lock()
	names = slices.DeleteFunc(names, func(name string) bool {
		en := e.mu.entries[name]
		return en != nil && en.dropped
	})
	e.mu.Unlock()
	slices.Sort(names)
	return names, nil
}

// walk collects the stores below a directory that is none itself.
func (e *Engine) walk(dir string, names *[]string) error {
	children, err := e.o.FS.List(e.path(dir))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // dropped meanwhile, or a file
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	if _, err := identity.Find(children); !fault.Is(err, fault.NoCopy) {
		*names = append(*names, dir) // one that cannot be read is there as well
		return nil
	}
	for _, child := range children {
		if dir == shardsDir && child == orphanedName {
			continue
		}
		if err := e.walk(dir+"/"+child, names); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether there is a store of that name, open or not. One that
// cannot be read is there as well.
func (e *Engine) Has(name string) bool {
	e.mu.Lock()
	en := e.mu.entries[name]
	known := en != nil && en.busy == nil
	dropped := known && en.dropped
	e.mu.Unlock()
	if known {
		return !dropped
	}
	files, err := e.o.FS.List(e.path(name))
	if err == nil {
		_, err = identity.Find(files)
		return !fault.Is(err, fault.NoCopy)
	}
	return !errors.Is(err, os.ErrNotExist)
}

// FileSize returns the bytes that a store has on disk, open or not. The error
// is fault.NoCopy when there is no such store.
func (e *Engine) FileSize(name string) (int64, error) {
	e.mu.Lock()
	en := e.mu.entries[name]
	if en != nil && en.busy == nil && !en.dropped && en.store.base().inst.Opened() {
		e.pinLocked(en)
		e.mu.Unlock()
		defer e.release(en.store.base())
		return en.store.base().FileSize()
	}
	e.mu.Unlock()
	files, err := e.o.FS.List(e.path(name))
	if err == nil {
		_, err = identity.Find(files)
	}
	if err != nil {
		return 0, noStore()
	}
	var total int64
	for _, f := range files {
		if info, err := e.o.FS.Stat(e.path(name, f)); err == nil {
			total += info.Size()
		}
	}
	return total, nil
}
