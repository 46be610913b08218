package storage

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/instance"
)

// rebuildingDir is the folder of the files of a rebuildingSet.
const rebuildingDir = "rebuilding"

// rebuildingSet remembers which stores are rebuilding: they do not hold yet what
// they should. Each has a file in one folder, its mark, named by a hash of the
// store's name, which is its content: so a node knows all of them after reading
// one folder, and a store that is lost with its files keeps its mark.
//
//	K1  A store that is made as a rebuilding one has its mark, durably, before
//	    it is there.
//	K2  The number in count is that of the names in byName: a reader that
//	    finds zero need not look.
type rebuildingSet struct {
	count atomic.Int64
	mu    struct {
		sync.RWMutex
		byName map[string]struct{}
	}
	files sync.Mutex // one file is made or removed at a time
}

// rebuildingFile is the path of the mark of a store.
func (e *Engine) rebuildingFile(name string) string {
	sum := sha256.Sum256([]byte(name))
	return e.path(rebuildingDir, hex.EncodeToString(sum[:]))
}

// loadRebuilding reads the folder. A file that a crash left half is of a store that
// was never made.
func (e *Engine) loadRebuilding() error {
	e.rebuilding.mu.byName = map[string]struct{}{}
	files, err := e.o.FS.List(e.path(rebuildingDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		path := e.path(rebuildingDir, file)
		name, err := e.readRebuildingFile(path)
		if err != nil {
			return err
		}
		if e.rebuildingFile(name) == path {
			e.rebuilding.mu.byName[name] = struct{}{}
		}
	}
	e.rebuilding.count.Store(int64(len(e.rebuilding.mu.byName)))
	return nil
}

func (e *Engine) readRebuildingFile(path string) (string, error) {
	f, err := e.o.FS.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}

// SetRebuilding notes durably that a store does not hold yet what it should; the
// store need not exist. Marking it again changes nothing.
func (e *Engine) SetRebuilding(name string) error {
	e.rebuilding.files.Lock()
	defer e.rebuilding.files.Unlock()
	if e.Rebuilding(name) {
		return nil
	}
	err := e.dirs.ensure(e.path(rebuildingDir))
	if err == nil {
		err = e.writeRebuildingFile(e.rebuildingFile(name), name)
	}
	if err != nil {
		return instance.DiskError("mark store "+name, err)
	}
	e.rebuilding.mu.Lock()
	defer e.rebuilding.mu.Unlock()
	e.rebuilding.mu.byName[name] = struct{}{}
	e.rebuilding.count.Add(1)
	return nil
}

func (e *Engine) writeRebuildingFile(path, name string) error {
	f, err := e.o.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(name)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return instance.SyncDir(e.o.FS, e.path(rebuildingDir))
}

// ClearRebuilding takes the mark away, durably on return; a store without one is
// left alone.
func (e *Engine) ClearRebuilding(name string) error {
	e.rebuilding.files.Lock()
	defer e.rebuilding.files.Unlock()
	if !e.Rebuilding(name) {
		return nil
	}
	err := e.o.FS.Remove(e.rebuildingFile(name))
	if errors.Is(err, os.ErrNotExist) {
		err = nil // removed by a call that could not sync the folder
	}
	if err == nil {
		err = instance.SyncDir(e.o.FS, e.path(rebuildingDir))
	}
	if err != nil {
		return fmt.Errorf("take the mark off store %s: %w", name, err)
	}
	e.rebuilding.mu.Lock()
	defer e.rebuilding.mu.Unlock()
	delete(e.rebuilding.mu.byName, name)
	e.rebuilding.count.Add(-1)
	return nil
}

// Rebuilding reports whether a store has a mark. It costs one atomic load while
// none has.
func (e *Engine) Rebuilding(name string) bool {
	if e.rebuilding.count.Load() == 0 {
		return false
	}
	e.rebuilding.mu.RLock()
	defer e.rebuilding.mu.RUnlock()
	_, ok := e.rebuilding.mu.byName[name]
	return ok
}

// AllRebuilding returns the names of all stores with a mark, sorted.
func (e *Engine) AllRebuilding() []string {
	e.rebuilding.mu.RLock()
	defer e.rebuilding.mu.RUnlock()
	names := make([]string, 0, len(e.rebuilding.mu.byName))
	for name := range e.rebuilding.mu.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
