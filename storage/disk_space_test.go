package storage

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/keyspace"
)

// tellingFS is a file system that tells how much space there is.
type tellingFS struct {
	vfs.FS
	free *atomic.Uint64
}

func (f tellingFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: f.free.Load()}, nil
}

// While there is little space, writes are refused before anything fails: reads go
// on, what gives space back may be written, and writes go on with the next look.
func TestLittleSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := &atomic.Uint64{}
		free.Store(3 * diskspace.Kept)
		fs := tellingFS{vfs.NewMem(), free}
		core, lines := observer.New(zap.InfoLevel)
		e, stop := startEngine(t, Options{FS: fs, Logger: zap.New(core)})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{}))
		s, err := e.Acquire(testStore)
		must(t, err)
		putDocs(t, s, newEdits(), docsOf{50, 10, numbered})
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		setKeys(t, x, "a")
		free.Store(2*diskspace.Kept - 1) // documents have space
		<-time.After(diskspace.Look)
		indexWaits(t, x)
		writeOne(t, s)
		must(t, e.DiskFull())
		if s := e.Stats(); s.DiskFree != 2*diskspace.Kept-1 || s.DiskSize != 1<<40 {
			t.Errorf("free %d of %d", s.DiskFree, s.DiskSize)
		}
		free.Store(diskspace.Kept - 1)
		<-time.After(diskspace.Look)
		if _, err := s.NewBatch().Apply(); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("Apply: %v", err)
		}
		if _, err := s.NewAttachment("a", keyspace.ContentKey{}); !fault.Is(err, fault.InsufficientStorage) {
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
		indexWaits(t, x)
		if got := keysOf(t, x); !slices.Equal(got, []string{"a=a!"}) {
			t.Errorf("the index holds %v", got)
		}
		e.Indexes().Release(x)

		e.Release(s)
		must(t, e.cache.closeIdle(0))
		s, err = e.Acquire(testStore) // opened for reading
		must(t, err)
		checkStore(t, s)

		free.Store(diskspace.Kept)
		<-time.After(diskspace.Look)
		// A reader goes on: the first write ends that opening, and the next has space.
		if _, err := s.NewBatch().Apply(); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("Apply to what was opened for reading: %v", err)
		}
		e.Release(s)
		s, err = e.Acquire(testStore)
		must(t, err)
		writeOne(t, s)
		if n := s.Counters().Live; n != 50 {
			t.Errorf("%d documents", n)
		}
		free.Store(diskspace.ResumeHalves*diskspace.Kept/2 - 1) // a little more is no reason to go on
		<-time.After(2 * time.Second)
		if n := lines.FilterMessageSnippet("indexes are updated again").Len(); n != 0 {
			t.Error("indexes go on too early")
		}
		free.Store(diskspace.ResumeHalves * diskspace.Kept / 2)
		<-time.After(diskspace.ResumeAfter) // no request looks
		if tight, space := lines.FilterMessageSnippet("indexes are not updated").Len(), lines.FilterMessageSnippet("indexes are updated again").Len(); tight != 1 || space != 1 {
			t.Errorf("the log says %d times that indexes wait, %d times that they go on", tight, space)
		}
		x, err = e.Indexes().Acquire(s, "abc")
		must(t, err)
		setKeys(t, x, "b")
		e.Indexes().Release(x)
		e.Release(s)
		if full, space := lines.FilterMessageSnippet("the disk is full").Len(), lines.FilterMessageSnippet("has space again").Len(); full != 1 || space != 1 {
			t.Errorf("the log says %d times that the disk is full, %d times that it is not", full, space)
		}
	})
}

// indexWaits commits to an index that has no space.
func indexWaits(t *testing.T, x *Index) {
	t.Helper()
	b := x.NewBatch(false)
	defer b.Close()
	b.Set([]byte("b"), nil)
	if err := b.Commit(t.Context()); !fault.Is(err, fault.InsufficientStorage) {
		t.Errorf("Commit of an index: %v", err)
	}
	if err := x.Compact(t.Context()); !fault.Is(err, fault.InsufficientStorage) {
		t.Errorf("Compact of an index: %v", err)
	}
	must(t, x.Err())
}
