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
	size   int64
	time   time.Time
	tried  bool      // whether it can be set right is known
	unread int       // tries at which the disk did not read the table
	after  time.Time // when the next try is due
}

const (
	mendAgain = 30 * time.Second // after a try that ended with an error
	// maxTries is how often the disk may refuse to read a table before the table is taken for damaged.
	maxTries = 5
)

// unreadError says that the disk did not read a table.
type unreadError struct{ error }

func (e unreadError) Unwrap() error { return e.error }

// Corrected is how many bits were set right.
func (m *Mending) Corrected() int64 { return m.corrected.Load() }

// met notes that a table is damaged, and reports whether that is news.
func (m *Mending) met(fs vfs.FS, path string) (first bool) {
	m.forgetGone(fs)
	info, err := fs.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return true // the table is gone
	}
	var t metTable // without a size and a time while the disk does not tell them
	if err == nil {
		t.size, t.time = info.Size(), info.ModTime()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.tables[path]; known {
		return false
	}
	if m.tables == nil {
		m.tables = make(map[string]metTable)
	}
	m.tables[path] = t
	return true
}

// forgetGone forgets the tables that are gone, or have made way for others.
func (m *Mending) forgetGone(fs vfs.FS) {
	m.mu.Lock()
	all := maps.Clone(m.tables)
	m.mu.Unlock()
	for path, t := range all {
		info, err := fs.Stat(path)
		gone := errors.Is(err, os.ErrNotExist)
		if err != nil && !gone {
			continue
		}
		if !gone && info.Size() == t.size && info.ModTime().Equal(t.time) {
			continue
		}
		m.mu.Lock()
		switch {
		case m.tables[path] != t: // it is another one already
		case gone || !t.time.IsZero():
			delete(m.tables, path)
		default:
			t.size, t.time = info.Size(), info.ModTime()
			m.tables[path] = t
		}
		m.mu.Unlock()
	}
}

// of returns the tables of a directory that are damaged, of which untried may still be set right, and due
// may be tried now.
func (m *Mending) of(fs vfs.FS, dir string) (all, untried, due []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, t := range m.tables {
		if fs.PathDir(path) != dir {
			continue
		}
		all = append(all, path)
		if t.tried {
			continue
		}
		untried = append(untried, path)
		if time.Until(t.after) <= 0 {
			due = append(due, path)
		}
	}
	return all, untried, due
}

// tried notes that it was tried to set a table right. One that is whole now, or gone, is not
// damaged. An error says nothing of the table, which is tried again after a pause: for as long as it
// takes when the disk is full, for instance, and a few times when it does not read the table.
func (m *Mending) tried(path string, whole bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, met := m.tables[path]
	switch {
	case !met:
	case err == nil && whole:
		delete(m.tables, path)
	case err == nil:
		t.tried = true
		m.tables[path] = t
	default:
		if _, unread := errors.AsType[unreadError](err); unread {
			t.unread++
		}
		t.tried, t.after = t.unread >= maxTries, time.Now().Add(mendAgain)
		m.tables[path] = t
	}
}

// Mends reports whether damaged tables are known that may be whole when the instance is opened anew, now or
// later. Until then nothing that it has counts as lost.
func (i *Instance) Mends() bool {
	_, untried, _ := i.shared.Mending.of(i.shared.FS, i.Dir)
	return len(untried) > 0
}

// MendDue is Mends for tables that may be tried now.
func (i *Instance) MendDue() bool {
	_, _, due := i.shared.Mending.of(i.shared.FS, i.Dir)
	return len(due) > 0
}

// mendTables sets right what can be of the tables that are known to be damaged.
func (i *Instance) mendTables(k Kind) {
	i.shared.Mending.forgetGone(i.shared.FS)
	_, _, due := i.shared.Mending.of(i.shared.FS, i.Dir)
	for _, path := range due {
		whole, err := i.mendTable(path, i.options(k))
		if err != nil {
			i.log.Error("a damaged file could not be set right", zap.String("file", path), zap.Error(err))
		}
		i.shared.Mending.tried(path, whole, err)
	}
	i.stall.righted.Store(len(due) > 0 && i.Mended())
}

// Righted reports whether tables were damaged, and all of them were set right before the instance was opened.
func (i *Instance) Righted() bool { return i.stall.righted.Load() }

// Mended reports whether no table of the instance is known to be damaged.
func (i *Instance) Mended() bool {
	all, _, _ := i.shared.Mending.of(i.shared.FS, i.Dir)
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
