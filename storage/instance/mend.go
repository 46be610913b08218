package instance

import (
	"errors"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// A disk, a cable or memory that flips a bit leaves a file that says by its own checksums which
// bit that was. Before an instance is opened, such bits of its manifest and its logs are set
// right, and those of tables that were met (Mending).

// flip is a bit of a file that is another one than its checksum says.
type flip struct {
	at   int64
	mask byte
}

// Mending is which tables of a node were found to be damaged. The zero value is ready. It is safe for
// concurrent use.
type Mending struct {
	corrected atomic.Int64
	mu        sync.Mutex
	tables    map[string]metTable // by path
}

// metTable is a damaged table. A file of another size or time is another one: numbers of tables come again.
type metTable struct {
	size  int64
	time  time.Time
	tried bool // it was tried to set it right
}

// Corrected is how many bits were set right.
func (m *Mending) Corrected() int64 { return m.corrected.Load() }

// met notes that a table is damaged, and reports whether that is news.
func (m *Mending) met(fs vfs.FS, path string) (first bool) {
	m.forgetGone(fs)
	info, err := fs.Stat(path)
	if err != nil {
		return true // it is gone
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.tables[path]; known {
		return false
	}
	if m.tables == nil {
		m.tables = make(map[string]metTable)
	}
	m.tables[path] = metTable{size: info.Size(), time: info.ModTime()}
	return true
}

// forgetGone forgets the tables that are gone, or have made way for others.
func (m *Mending) forgetGone(fs vfs.FS) {
	m.mu.Lock()
	all := maps.Clone(m.tables)
	m.mu.Unlock()
	for path, t := range all {
		if info, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) || err == nil && (info.Size() != t.size || !info.ModTime().Equal(t.time)) {
			m.mu.Lock()
			if m.tables[path] == t {
				delete(m.tables, path)
			}
			m.mu.Unlock()
		}
	}
}

// of returns the tables of a directory that are damaged, of which fresh were not tried yet.
func (m *Mending) of(fs vfs.FS, dir string) (all, fresh []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, t := range m.tables {
		if fs.PathDir(path) != dir {
			continue
		}
		all = append(all, path)
		if !t.tried {
			fresh = append(fresh, path)
		}
	}
	return all, fresh
}

// tried notes that it was tried to set a table right. One that is whole now, or gone, is not
// damaged.
func (m *Mending) tried(path string, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, met := m.tables[path]
	switch {
	case whole:
		delete(m.tables, path)
	case met:
		t.tried = true
		m.tables[path] = t
	}
}

// Mends reports whether damaged tables were met since the instance was opened that may be whole when
// it is opened anew.
func (i *Instance) Mends() bool {
	_, fresh := i.shared.Mending.of(i.shared.FS, i.Dir)
	return len(fresh) > 0
}

// mendTables sets right what can be of the tables that are known to be damaged.
func (i *Instance) mendTables(k Kind) {
	i.shared.Mending.forgetGone(i.shared.FS)
	_, fresh := i.shared.Mending.of(i.shared.FS, i.Dir)
	for _, path := range fresh {
		whole, err := i.mendTable(path, i.options(k))
		if err != nil {
			i.log.Error("a damaged file could not be set right", zap.String("file", path), zap.Error(err))
		}
		i.shared.Mending.tried(path, whole && err == nil)
	}
	i.stall.righted.Store(len(fresh) > 0 && i.Mended())
}

// Righted reports whether tables were damaged, and all of them were set right before the instance was opened.
func (i *Instance) Righted() bool { return i.stall.righted.Load() }

// Mended reports whether no table of the instance is known to be damaged.
func (i *Instance) Mended() bool {
	all, _ := i.shared.Mending.of(i.shared.FS, i.Dir)
	return len(all) == 0
}

// write sets bits of a log or a manifest right, durably, and says so. It does so in place: each byte is written
// whole or not at all, and checkpoints have copies of these files.
func (i *Instance) write(path string, flips []flip) (err error) {
	if len(flips) == 0 {
		return nil
	}
	f, err := i.shared.FS.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, fl := range flips {
		var one [1]byte
		if _, err := f.ReadAt(one[:], fl.at); err != nil {
			return err
		}
		one[0] ^= fl.mask
		if _, err := f.WriteAt(one[:], fl.at); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	i.told(path, flips)
	return nil
}

// told counts bits that were set right, and says which.
func (i *Instance) told(path string, flips []flip) {
	for _, fl := range flips {
		i.shared.Mending.corrected.Add(1)
		i.log.Error("a bit of a file was another one than its checksum says, and was set right",
			zap.String("file", path), zap.Int64("offset", fl.at), zap.Uint8("bit", fl.mask))
	}
}
