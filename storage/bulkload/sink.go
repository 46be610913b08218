package bulkload

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/sstable"
)

// Sink takes tables as streams, one after the other.
type Sink interface {
	Begin() error
	io.Writer
	End() error
}

// tableStream writes entries in the order of their keys into tables of a sink.
type tableStream struct {
	sink    Sink
	options sstable.WriterOptions
	table   *sstable.Writer // nil: none is open
	into    *sinkTable      // of table
	size    int             // bytes in table
}

// begin makes sure that a table is open that takes more.
func (t *tableStream) begin() error {
	if t.table != nil && t.size >= tableBytes {
		if err := t.end(nil); err != nil {
			return err
		}
	}
	if t.table == nil {
		if err := t.sink.Begin(); err != nil {
			return err
		}
		t.into, t.size = &sinkTable{sink: t.sink}, 0
		t.table = sstable.NewWriter(t.into, t.options)
	}
	return nil
}

func (t *tableStream) set(key, value []byte) error {
	if err := t.begin(); err != nil {
		return err
	}
	t.size += len(key) + len(value)
	return t.table.Set(key, value)
}

func (t *tableStream) delete(key []byte) error {
	if err := t.begin(); err != nil {
		return err
	}
	t.size += len(key)
	return t.table.Delete(key)
}

// deleteRange deletes keys that tables before this one have. Ranges come in the order of their
// keys, apart from that of entries.
func (t *tableStream) deleteRange(from, to []byte) error {
	if err := t.begin(); err != nil {
		return err
	}
	t.size += len(from) + len(to)
	return t.table.DeleteRange(from, to)
}

// end ends the table that is open. After an error it gives back what the table holds.
func (t *tableStream) end(err error) error {
	if t.table == nil {
		return nil
	}
	t.into.failed.Store(err != nil)
	err = t.table.Close()
	t.table = nil
	return err
}

// sinkTable is a table of a sink. It implements objstorage.Writable, which the writer of the table
// calls on a goroutine of its own until it is closed.
type sinkTable struct {
	sink   Sink
	failed atomic.Bool // the work has ended; what comes is lost
}

var errGivenUp = errors.New("the table was given up")

// Write implements objstorage.Writable.
func (s *sinkTable) Write(b []byte) error {
	if s.failed.Load() {
		return errGivenUp
	}
	_, err := s.sink.Write(b)
	return err
}

// Finish implements objstorage.Writable.
func (s *sinkTable) Finish() error {
	if s.failed.Load() {
		return errGivenUp
	}
	return s.sink.End()
}

// Abort implements objstorage.Writable.
func (s *sinkTable) Abort() {}
