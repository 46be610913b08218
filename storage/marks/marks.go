// Package marks keeps facts about stores in files apart from them, so that they
// outlive a store that is lost with its files.
package marks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/instance"
)

// Folder is where the marks of one kind are.
type Folder struct {
	FS     vfs.FS
	Path   string
	Ensure func(dir string) error // makes a directory, durably
}

// Hash names a store in the name of a file.
func Hash(store string) string {
	sum := sha256.Sum256([]byte(store))
	return hex.EncodeToString(sum[:])
}

func (f *Folder) file(store string) string { return f.FS.PathJoin(f.Path, Hash(store)) }

// Set is marks that are durable, and all of which are in memory. A mark is a file
// in a folder, named by a hash of the store's name, which is its content: so a
// node knows all of them after reading one folder. A Set is safe for concurrent
// use.
//
//	K1  A mark is durable when Add returns.
//	K2  The number in count is that of the names in byName: a reader that
//	    finds zero need not look.
type Set struct {
	Folder
	count atomic.Int64
	mu    struct {
		sync.RWMutex
		byName map[string]struct{}
	}
	files sync.Mutex // one file is made or removed at a time
}

// Load reads the folder. A file that a crash left half is no mark.
func (s *Set) Load() error {
	s.mu.byName = map[string]struct{}{}
	files, err := s.FS.List(s.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		path := s.FS.PathJoin(s.Path, file)
		store, err := s.read(path)
		if err != nil {
			return err
		}
		if s.file(store) == path {
			s.mu.byName[store] = struct{}{}
		}
	}
	s.count.Store(int64(len(s.mu.byName)))
	return nil
}

func (s *Set) read(path string) (string, error) {
	f, err := s.FS.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(f)
	return string(text), errors.Join(err, f.Close())
}

// Add marks a store, which need not exist. Marking it again changes nothing.
func (s *Set) Add(store string) error {
	s.files.Lock()
	defer s.files.Unlock()
	if s.Has(store) {
		return nil
	}
	err := s.Ensure(s.Path)
	if err == nil {
		err = s.write(s.file(store), store)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.byName[store] = struct{}{}
	s.count.Add(1)
	return nil
}

func (s *Set) write(path, store string) error {
	f, err := s.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write([]byte(store)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return instance.SyncDir(s.FS, s.Path)
}

// Remove takes the mark away, durably on return; a store without one is left
// alone.
func (s *Set) Remove(store string) error {
	s.files.Lock()
	defer s.files.Unlock()
	if !s.Has(store) {
		return nil
	}
	err := s.FS.Remove(s.file(store))
	if errors.Is(err, os.ErrNotExist) {
		err = nil // removed by a call that could not sync the folder
	}
	if err == nil {
		err = instance.SyncDir(s.FS, s.Path)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.byName, store)
	s.count.Add(-1)
	return nil
}

// Has reports whether a store has a mark. It costs one atomic load while none
// has.
func (s *Set) Has(store string) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.mu.byName[store]
	return ok
}

// All returns the names of all stores with a mark, sorted.
func (s *Set) All() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.mu.byName))
	for name := range s.mu.byName {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
