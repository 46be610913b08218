// Package marks keeps which stores were made, in a file apart from them, so that it
// outlives a store that is lost with its files.
package marks

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Made is the stores that were made here and not dropped since: one of them that
// is not there was lost. They are lines of one file, which only grows while the
// process lives, and which no caller waits for: making and dropping a store
// costs one short write more. What a crash takes from its end is noted again
// when the stores are listed; a store that is lost before that passes for one
// that was never made. A drop that is forgotten does no harm, as no database
// names the store any more. A Made is safe for concurrent use.
type Made struct {
	FS   vfs.FS
	Path string

	seed  maphash.Seed
	stale bool       // more than half of the file says nothing any more
	files sync.Mutex // held while the file is written
	file  vfs.File   // nil until something is written; guarded by files
	size  int64      // of the file; guarded by files

	mu  sync.RWMutex
	has map[uint64]struct{} // hashes of the names: there may be hundreds of thousands
}

const (
	lineMade    = '+'
	lineDropped = '-'
	leastStale  = 64 << 10
)

// Load reads the file.
func (m *Made) Load() error {
	m.seed, m.has = maphash.MakeSeed(), map[uint64]struct{}{}
	names, size, err := m.read()
	if err != nil {
		return err
	}
	live := int64(0)
	for name := range names {
		m.has[maphash.String(m.seed, name)] = struct{}{}
		live += int64(len(name)) + 2
	}
	m.stale = size > leastStale && size > 2*live
	return nil
}

// read returns the names in the file, and its size. Lines that a crash left half
// mean nothing.
func (m *Made) read() (names map[string]struct{}, size int64, err error) {
	names = map[string]struct{}{}
	f, err := m.FS.Open(m.Path)
	if errors.Is(err, os.ErrNotExist) {
		return names, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	text, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, 0, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for line := range bytes.Lines(whole) {
		switch name := string(bytes.TrimRight(line[1:], "\n")); line[0] {
		case lineMade:
			names[name] = struct{}{}
		case lineDropped:
			delete(names, name)
		}
	}
	return names, int64(len(text)), nil
}

// Has reports whether a store was made and not dropped.
func (m *Made) Has(store string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	_, ok := m.has[maphash.String(m.seed, store)]
	return ok
}

// Any reports whether any store was made and not dropped.
func (m *Made) Any() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.has) > 0
}

// Note notes that a store is there.
func (m *Made) Note(store string) error {
	if m.Has(store) || strings.Contains(store, "\n") {
		return nil
	}
	if err := m.append(lineMade, store); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.has[maphash.String(m.seed, store)] = struct{}{}
	return nil
}

// Forget notes that a store is dropped.
func (m *Made) Forget(store string) {
	if !m.Has(store) {
		return
	}
	m.mu.Lock()
	delete(m.has, maphash.String(m.seed, store))
	m.mu.Unlock()
	_ = m.append(lineDropped, store) // see the type
}

func (m *Made) append(kind byte, store string) error {
	m.files.Lock()
	defer m.files.Unlock()
	if m.file == nil {
		if err := m.open(); err != nil {
			return err
		}
	}
	line := append(append([]byte{kind}, store...), '\n')
	if _, err := m.file.WriteAt(line, m.size); err != nil {
		return err
	}
	m.size += int64(len(line))
	return nil
}

// open opens the file behind what it has, and writes it anew when most of that
// says nothing.
func (m *Made) open() error {
	if m.stale {
		if err := m.rewrite(); err != nil {
			return err
		}
		m.stale = false
	}
	f, err := m.FS.OpenReadWrite(m.Path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	m.file, m.size = f, info.Size()
	if m.size == 0 {
		return nil
	}
	n, err := m.file.WriteAt([]byte("\x00\n"), m.size) // the last line may be half: it names nothing then
	m.size += int64(n)
	return err
}

func (m *Made) rewrite() error {
	names, _, err := m.read()
	if err != nil {
		return err
	}
	var text []byte
	for name := range names {
		text = append(append(append(text, lineMade), name...), '\n')
	}
	fresh := m.Path + ".new"
	f, err := m.FS.Create(fresh, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return m.FS.Rename(fresh, m.Path)
}

// Close closes the file.
func (m *Made) Close() error {
	m.files.Lock()
	defer m.files.Unlock()
	if m.file == nil {
		return nil
	}
	err := m.file.Close()
	m.file = nil
	return err
}
