package bulkload

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/sstable"
)

// Files makes the files of tables.
type Files interface {
	// Create begins a table, which is durable when its writer was closed.
	Create() (path string, w *sstable.Writer, err error)
	// Remove removes a table.
	Remove(path string) error
}

const (
	// tableBytes is the size at which a keyspace goes on in another table.
	tableBytes = 64 << 20
	// smallBytes is up to what size keyspaces share a table: there may be tens of
	// thousands of stores that are small.
	smallBytes = 256 << 10
)

// Tables are the tables that were written, to be ingested together: no two of
// them overlap.
type Tables struct {
	files Files
	paths []string
	put   int       // bytes of all entries since Looked was called
	all   []*stream // in the order of their keys
	err   error
}

// stream is one keyspace, or a few that follow each other.
type stream struct {
	t       *Tables
	pending []entry // while it is small
	memory  []byte  // of pending
	table   *sstable.Writer
	size    int // bytes in table, or in memory
	large   bool
}

type entry struct{ key, value []byte }

// stream begins another stream, whose keys are above those of all others.
func (t *Tables) stream() *stream {
	s := &stream{t: t}
	t.all = append(t.all, s)
	return s
}

func (t *Tables) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *Tables) create() *sstable.Writer {
	if t.err != nil {
		return nil
	}
	path, w, err := t.files.Create()
	if path != "" {
		t.paths = append(t.paths, path)
	}
	t.fail(err)
	return w
}

// put adds an entry; keys come in ascending order. Errors are kept.
func (s *stream) put(key, value []byte) {
	n := len(key) + len(value)
	s.t.put += n
	switch {
	case s.t.err != nil:
		return
	case !s.large && s.size+n <= smallBytes:
		s.keep(key, value)
		return
	case !s.large:
		s.large = true
		s.begin()
		for _, e := range s.pending {
			s.set(e.key, e.value)
		}
		s.pending, s.memory = nil, nil
	case s.size >= tableBytes:
		s.t.fail(s.table.Close())
		s.begin()
	}
	s.set(key, value)
}

func (s *stream) keep(key, value []byte) {
	at := len(s.memory)
	s.memory = append(append(s.memory, key...), value...)
	mid, end := at+len(key), len(s.memory)
	s.pending = append(s.pending, entry{s.memory[at:mid:mid], s.memory[mid:end:end]})
	s.size += len(key) + len(value)
}

func (s *stream) begin() { s.table, s.size = s.t.create(), 0 }

func (s *stream) set(key, value []byte) {
	if s.t.err == nil {
		s.t.fail(s.table.Set(key, value))
		s.size += len(key) + len(value)
	}
}

// close ends all tables. Small streams that follow each other share one.
func (t *Tables) close() error {
	shared := &stream{t: t}
	for _, s := range t.all {
		if s.large {
			shared.end()
			s.end()
			continue
		}
		for _, e := range s.pending {
			if shared.table == nil {
				shared.begin()
			}
			shared.set(e.key, e.value)
		}
		s.pending, s.memory = nil, nil
	}
	shared.end()
	return t.err
}

// end ends the table that is being written; it is synced then.
func (s *stream) end() {
	if s.table != nil {
		s.t.fail(s.table.Close())
		s.table = nil
	}
}

// Discard removes the files.
func (t *Tables) Discard() error {
	var errs []error
	for _, s := range t.all {
		if s.table != nil {
			_ = s.table.Close() // the file goes anyway
			s.table = nil
		}
	}
	for _, path := range t.paths {
		errs = append(errs, t.files.Remove(path))
	}
	t.paths = nil
	return errors.Join(errs...)
}
