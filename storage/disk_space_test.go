package storage

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/fault"
)

// tellingFS is a file system that tells how much room there is.
type tellingFS struct {
	vfs.FS
	free *atomic.Uint64
}

func (f tellingFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: f.free.Load()}, nil
}

// While there is little room, writes are refused before anything fails: reads go
// on, what gives room back may be written, and writes go on with the next look.
func TestLittleRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := &atomic.Uint64{}
		free.Store(keptSpace)
		fs := tellingFS{vfs.NewMem(), free}
		e, stop := startEngine(t, Options{FS: fs})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{}))
		s, err := e.Acquire(testStore)
		must(t, err)
		putDocs(t, s, newEdits(), docsOf{50, 10, numbered})
		free.Store(keptSpace - 1)
		<-time.After(checkSpace)
		if _, err := s.NewBatch().Apply(); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("Apply: %v", err)
		}
		if _, err := s.NewAttachment("a", contentKey{}); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("NewAttachment: %v", err)
		}
		if err := e.DiskFull(); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("DiskFull: %v", err)
		}
		must(t, s.Err())
		checkStore(t, s)
		b := s.NewReserveBatch()
		b.PutLocal("_local/a", []byte("{}"))
		commit(t, b)
		must(t, s.Compact(t.Context(), CompactOptions{}))

		e.Release(s)
		must(t, e.closeStores(e.takeUnused(0)))
		s, err = e.Acquire(testStore) // opened for reading
		must(t, err)
		checkStore(t, s)
		e.Release(s)

		free.Store(keptSpace)
		<-time.After(checkSpace)
		s, err = e.Acquire(testStore)
		must(t, err)
		writeOne(t, s)
		if n := s.Counters().Live; n != 50 {
			t.Errorf("%d documents", n)
		}
		e.Release(s)
	})
}
