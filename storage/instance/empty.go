package instance

import (
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Empty is the instance that stores without a write read from. It is opened when it is
// needed, and does no I/O. The zero value is ready; it is safe for concurrent use.
type Empty struct {
	mu sync.Mutex
	db *pebble.DB // nil: not open
}

// DB returns it. merger is that of the stores.
func (e *Empty) DB(s *Shared, merger *pebble.Merger) (*pebble.DB, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.db != nil {
		return e.db, nil
	}
	o := &pebble.Options{
		FS: vfs.NewMem(), Cache: s.Memory.Cache, FileCache: s.Files, Merger: merger,
		FormatMajorVersion: PebbleFormat, MemTableSize: IdleMemTable,
		Logger: discardLogger{}, DisableWAL: true,
	}
	o.Experimental.CompactionScheduler = s.Scheduler.ForStore()
	db, err := pebble.Open("empty", o)
	if err != nil {
		return nil, fmt.Errorf("open empty store: %w", err)
	}
	e.db = db
	return db, nil
}

// Close closes it if it is open.
func (e *Empty) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.db == nil {
		return nil
	}
	err := e.db.Close()
	e.db = nil
	return err
}

// discardLogger is for an instance that does no I/O.
type discardLogger struct{}

// Infof implements pebble.Logger.
func (discardLogger) Infof(string, ...any) {}

// Errorf implements pebble.Logger.
func (discardLogger) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger.
func (discardLogger) Fatalf(string, ...any) {}
