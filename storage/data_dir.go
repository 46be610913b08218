package storage

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
	"divan/storage/instance"
	"divan/storage/marks"
)

// Names inside the data directory.
const (
	shardsDir  = "shards"
	indexesDir = "indexes" // <range>/<database>.<suffix>/<signature> below it
	stagingDir = "staging" // stores that were dropped, to be removed

	rebuildingDir = "rebuilding" // marks of stores that do not hold yet what they should
	madeDir       = "made"       // marks of the stores that were made here and not dropped
)

// identity is what is fixed when a store is made. It is kept in the name of an
// empty file, STORE-<format>-<uuid>[-partitioned]: a name is there or not, so
// that a store is made with two syncs of directories and never half.
type identity struct {
	uuid        [16]byte
	partitioned bool
}

const (
	identityPrefix    = "STORE-"
	identityFormat    = "1-"
	partitionedSuffix = "-partitioned"
)

func (id identity) fileName() string {
	name := identityPrefix + identityFormat + hex.EncodeToString(id.uuid[:])
	if id.partitioned {
		name += partitionedSuffix
	}
	return name
}

// ownerPrefix begins the name of an empty file that says whose directory it is: a
// hash of the store's name follows. Stores of earlier versions have none until
// NoteMade makes it.
const ownerPrefix = "OF-"

func ownerFile(name string) string { return ownerPrefix + marks.Hash(name)[:32] }

// checkOwner refuses the directory of another store.
func checkOwner(files []string, name string) error {
	for _, f := range files {
		if strings.HasPrefix(f, ownerPrefix) && f != ownerFile(name) {
			return fault.New(fault.Corruption, "The directory is that of another shard.")
		}
	}
	return nil
}

// findIdentity looks for the file among those of a directory. The error is
// fault.NoCopy when there is none: the directory is no store.
func findIdentity(files []string) (id identity, err error) {
	for _, f := range files {
		rest, ok := strings.CutPrefix(f, identityPrefix)
		if !ok {
			continue
		}
		if rest, ok = strings.CutPrefix(rest, identityFormat); !ok {
			return id, fmt.Errorf("store of an unknown format: %s", f)
		}
		rest, id.partitioned = strings.CutSuffix(rest, partitionedSuffix)
		raw, err := hex.DecodeString(rest)
		if err != nil || len(raw) != len(id.uuid) {
			return id, fault.New(fault.Corruption, "malformed file name "+f)
		}
		copy(id.uuid[:], raw)
		return id, nil
	}
	return id, noStore()
}

// formatMarker begins the name of the file that says in which format a store is. A new
// store without it is made in the oldest one and brought up to date step by
// step, with ten files and ten syncs.
const formatMarker = "marker.format-version.000001."

// dirs makes directories durable and remembers which already are.
type dirs struct {
	fs vfs.FS
	mu struct {
		sync.Mutex
		durable map[string]struct{}
	}
}

// ensure makes a directory and its parents, all durable. Another goroutine may
// have made one without having synced it yet, so only a sync by this process
// counts.
func (d *dirs) ensure(dir string) error {
	d.mu.Lock()
	_, known := d.mu.durable[dir]
	d.mu.Unlock()
	if known || dir == "" {
		return nil
	}
	if err := d.fs.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	parent := d.fs.PathDir(dir)
	if parent != dir {
		if err := d.ensureParent(parent); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.durable == nil {
		d.mu.durable = map[string]struct{}{}
	}
	d.mu.durable[dir] = struct{}{}
	return nil
}

// ensureParent makes parent durable, then the entry in it.
func (d *dirs) ensureParent(parent string) error {
	if err := d.ensure(parent); err != nil {
		return err
	}
	err := instance.SyncDir(d.fs, parent)
	// A directory above the data directory may be unreadable for this user;
	// it is not ours to sync.
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

func (e *Engine) path(elem ...string) string {
	return e.o.FS.PathJoin(append([]string{e.o.Dir}, elem...)...)
}

// validName accepts a clean relative path: nothing that leaves the directory.
func validName(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || strings.HasPrefix(part, identityPrefix) {
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
	if _, err := findIdentity(children); !fault.Is(err, fault.NoCopy) {
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
		_, err = findIdentity(files)
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
		_, err = findIdentity(files)
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
