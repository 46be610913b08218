// Package paths knows the directories in which stores are. The name of a store is
// a path of any depth: a database "team/pond" has its copies at
// shards/<range>/team/pond.<suffix>. Only this package finds out which
// directories are stores, and which are only on the way to one.
package paths

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
)

// Tree is the directories below a data directory. Names are relative to it. It is
// safe for concurrent use.
type Tree struct {
	Dirs
	Root string // the data directory

	// held is taken for reading from before the directories above a store are
	// made until it is in them, so that they do not go as empty ones meanwhile.
	held sync.RWMutex
}

// Path returns the path of a name.
func (t *Tree) Path(elem ...string) string {
	return t.FS.PathJoin(append([]string{t.Root}, elem...)...)
}

// Walk calls visit with a directory and with what is in it, then does the same
// below it where visit says so.
func (t *Tree) Walk(dir string, visit func(dir string, children []string) (below bool, err error)) error {
	children, err := t.FS.List(t.Path(dir))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil // dropped meanwhile, or a file
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	below, err := visit(dir, children)
	if err != nil || !below {
		return err
	}
	for _, child := range children {
		if err := t.Walk(dir+"/"+child, visit); err != nil {
			return err
		}
	}
	return nil
}

// Store is a store on the disk.
type Store struct {
	Name   string // its path
	CopyID uint64 // see identity.Identity; 0 also when it cannot be read
	Other  bool   // it says that it is another store, or that cannot be read

	Partitioned bool // as it was made

	UUID  [16]byte
	Small bool // see identity.Identity
}

// Valid accepts a clean relative path: nothing that leaves the directory.
func Valid(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.HasPrefix(part, identity.Prefix) {
			return false
		}
	}
	return !strings.ContainsAny(name, "\x00\\")
}

// Stores returns the stores below a directory that is none itself, but not those
// below another one. A store that cannot be read is there as well.
func (t *Tree) Stores(dir, except string) (stores []Store, err error) {
	err = t.Walk(dir, func(name string, children []string) (bool, error) {
		if name == except {
			return false, nil
		}
		id, err := identity.Find(children)
		if fault.Is(err, fault.NoCopy) {
			return true, nil
		}
		other := err != nil || id.Check(name) != nil
		stores = append(stores, Store{Name: name, CopyID: id.Copy, Other: other, Partitioned: id.Partitioned, UUID: id.UUID, Small: id.Small})
		return false, nil //nolint:nilerr // one that cannot be read is there as well
	})
	return stores, err
}

// Size returns the bytes of files in a directory. Those that have gone count nothing.
func (t *Tree) Size(dir string, files []string) (bytes int64) {
	for _, f := range files {
		if info, err := t.FS.Stat(t.Path(dir, f)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// Orphans calls drop with the directories below dir that belong to no store below
// owners, and removes what they leave empty. A directory belongs to the store of
// the same path there, and is on the way to one when that path is a directory
// but no store; anything else belongs to none.
func (t *Tree) Orphans(dir, owners string, drop func(name string) error) error {
	var passed []string // directories on the way, parents first
	err := t.Walk(dir, func(name string, _ []string) (bool, error) {
		if name == dir {
			return true, nil
		}
		children, err := t.FS.List(t.Path(owners + strings.TrimPrefix(name, dir)))
		if err == nil {
			_, err = identity.Find(children)
		}
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			return false, drop(name)
		case fault.Is(err, fault.NoCopy):
			passed = append(passed, name)
			return true, nil
		}
		return false, nil // one that cannot be read is there as well
	})
	for _, name := range slices.Backward(passed) {
		t.removeEmpty(name)
	}
	return err
}

// Hold keeps the directories above stores from being removed until release: a
// store is being put into one.
func (t *Tree) Hold() (release func()) {
	t.held.RLock()
	return t.held.RUnlock
}

// RemoveParents removes the directories above a store that is gone, up to that
// of its range, as far as nothing else is in them.
func (t *Tree) RemoveParents(name string) {
	const ofRange = 2 // shards/<range>
	parts := strings.Split(name, "/")
	if len(parts) <= ofRange+1 {
		return
	}
	t.held.Lock()
	defer t.held.Unlock()
	for n := len(parts) - 1; n > ofRange; n-- {
		if !t.removeEmpty(strings.Join(parts[:n], "/")) {
			return
		}
	}
}

// removeEmpty removes a directory that has nothing in it, and reports whether it
// did. It is not durable: an empty directory does no harm.
func (t *Tree) removeEmpty(name string) bool {
	path := t.Path(name)
	if children, err := t.FS.List(path); err != nil || len(children) > 0 {
		return false
	}
	t.forget(path)
	return t.FS.Remove(path) == nil
}

// MoveBelow moves a directory to a path, durably, or to the first free one with a number
// behind it. The directories above are made, also when an operator has removed them since.
func (t *Tree) MoveBelow(name, to string) error {
	defer t.Hold()()
	for n, free := 1, to; ; n++ {
		if _, err := t.FS.Stat(t.Path(free)); errors.Is(err, os.ErrNotExist) {
			to = free
			break
		}
		free = to + "." + strconv.Itoa(n)
	}
	from, parent := t.Path(name), t.FS.PathDir(t.Path(to))
	if err := errors.Join(t.Ensure(parent), t.FS.MkdirAll(parent, 0o755)); err != nil {
		return err
	}
	if err := t.FS.Rename(from, t.Path(to)); err != nil {
		return err
	}
	return errors.Join(instance.SyncDir(t.FS, parent), instance.SyncDir(t.FS, t.FS.PathDir(from)))
}
