package instance

import (
	"errors"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
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
