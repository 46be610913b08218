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
)

// marksDir is the folder of the marks, see marks.
const marksDir = "rebuilding"

// marks notes which stores do not hold yet what they should. A mark is a file
// of its own in one folder, named by a hash of the store's name, which is its
// content: so a node knows all marks after reading one folder, and a store
// that is lost with its files keeps its mark.
//
//	K1  A store that is made with a mark has it, durably, before it is there.
//	K2  The number in count is that of the names in byName: a reader that
//	    finds zero need not look.
type marks struct {
	count atomic.Int64
	mu    struct {
		sync.RWMutex
		byName map[string]struct{}
	}
	files sync.Mutex // one file is made or removed at a time
}

// markFile is the path of the mark of a store.
func (e *Engine) markFile(name string) string {
	sum := sha256.Sum256([]byte(name))
	return e.path(marksDir, hex.EncodeToString(sum[:]))
}

// loadMarks reads the folder. A file that a crash left half is of a store that
// was never made.
func (e *Engine) loadMarks() error {
	e.marks.mu.byName = map[string]struct{}{}
	files, err := e.o.FS.List(e.path(marksDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		path := e.path(marksDir, file)
		name, err := e.readMark(path)
		if err != nil {
			return err
		}
		if e.markFile(name) == path {
			e.marks.mu.byName[name] = struct{}{}
		}
	}
	e.marks.count.Store(int64(len(e.marks.mu.byName)))
	return nil
}

func (e *Engine) readMark(path string) (string, error) {
	f, err := e.o.FS.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}

// Mark notes durably that a store does not hold yet what it should; the store
// need not exist. Marking it again changes nothing.
func (e *Engine) Mark(name string) error {
	e.marks.files.Lock()
	defer e.marks.files.Unlock()
	if e.Marked(name) {
		return nil
	}
	err := e.dirs.ensure(e.path(marksDir))
	if err == nil {
		err = e.writeMark(e.markFile(name), name)
	}
	if err != nil {
		return diskError("mark store "+name, err)
	}
	e.marks.mu.Lock()
	defer e.marks.mu.Unlock()
	e.marks.mu.byName[name] = struct{}{}
	e.marks.count.Add(1)
	return nil
}

func (e *Engine) writeMark(path, name string) error {
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
	return syncDir(e.o.FS, e.path(marksDir))
}

// Unmark takes a mark away, durably on return; a store without one is left
// alone.
func (e *Engine) Unmark(name string) error {
	e.marks.files.Lock()
	defer e.marks.files.Unlock()
	if !e.Marked(name) {
		return nil
	}
	err := e.o.FS.Remove(e.markFile(name))
	if errors.Is(err, os.ErrNotExist) {
		err = nil // removed by a call that could not sync the folder
	}
	if err == nil {
		err = syncDir(e.o.FS, e.path(marksDir))
	}
	if err != nil {
		return fmt.Errorf("take the mark off store %s: %w", name, err)
	}
	e.marks.mu.Lock()
	defer e.marks.mu.Unlock()
	delete(e.marks.mu.byName, name)
	e.marks.count.Add(-1)
	return nil
}

// Marked reports whether a store has a mark. It costs one atomic load while no
// store has one.
func (e *Engine) Marked(name string) bool {
	if e.marks.count.Load() == 0 {
		return false
	}
	e.marks.mu.RLock()
	defer e.marks.mu.RUnlock()
	_, ok := e.marks.mu.byName[name]
	return ok
}

// Marks returns the names of all stores with a mark, sorted.
func (e *Engine) Marks() []string {
	e.marks.mu.RLock()
	defer e.marks.mu.RUnlock()
	names := make([]string, 0, len(e.marks.mu.byName))
	for name := range e.marks.mu.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
