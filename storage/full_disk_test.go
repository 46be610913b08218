package storage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// silentFS does not tell how much space there is, so that the engine learns of a full
// disk by errors.
type silentFS struct{ storagetest.SizedFS }

func (silentFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}

// fillIndex commits rows that cannot be compressed until that fails, with so much
// time between two batches, and returns how many were taken.
func fillIndex(t *testing.T, x *Index, bytesOf int, pause time.Duration) (batches int, err error) {
	t.Helper()
	rng := rand.NewChaCha8([32]byte{1})
	value := make([]byte, 16<<10)
	for ; bytesOf > 0; batches++ {
		b := x.NewBatch(false)
		for i := range 16 {
			_, _ = rng.Read(value)
			b.Set(fmt.Appendf(nil, "k%08d-%d", batches, i), value)
		}
		bytesOf -= b.Len()
		err := b.Commit(t.Context())
		b.Close()
		if err != nil {
			return batches, err
		}
		if pause > 0 {
			<-time.After(pause)
		}
	}
	return batches, nil
}

// TestBuildFillsDisk: when an index takes the last byte of a disk, its commits end
// with an error instead of waiting in the engine, the tables that could not be
// written leave nothing behind, other stores are closed as ever, and a removed index
// gives all its space back. Later it goes on.
func TestBuildFillsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storagetest.NewSizedFS(vfs.NewMem(), 48<<20)
		e, stop := startEngine(t, Options{FS: silentFS{disk}})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, testStore)
		putDocs(t, s, newEdits(), docsOf{50, 10, numbered})
		before := disk.Used()
		for range 3 {
			x, err := e.Indexes().Acquire(s, "abc")
			if err == nil {
				_, err = fillIndex(t, x, 1<<30, 0)
				e.Indexes().Release(x)
			}
			if !fault.Is(err, fault.InsufficientStorage) && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("filling a disk: %v", err)
			}
			<-time.After(retryAfter + time.Second)
		}
		must(t, s.Err())
		checkStore(t, s)
		must(t, e.Indexes().Drop(testStore, "abc"))
		<-time.After(time.Second) // the sweep
		if used := disk.Used(); used > before+1<<20 {
			t.Errorf("%d bytes are used after the index was removed, %d before it was made", used, before)
		}
		writeOne(t, s)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		if _, err := fillIndex(t, x, 4<<20, 0); err != nil {
			t.Errorf("with space again: %v", err)
		}
		e.Indexes().Release(x)
		e.Release(s)
	})
}

// TestBuildLeavesSpace: on a disk that tells how much space there is, an index stops
// well before documents are refused, keeps what it has, and goes on some seconds after
// there is space.
func TestBuildLeavesSpace(t *testing.T) {
	storagetest.SkipShort(t)
	synctest.Test(t, func(t *testing.T) {
		disk := storagetest.NewSizedFS(vfs.NewMem(), 200<<20)
		e, stop := startEngine(t, Options{FS: disk})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, testStore)
		w := newEdits()
		putDocs(t, s, w, docsOf{50, 10, numbered})
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		n, err := fillIndex(t, x, 1<<30, diskspace.LookIndexes)
		if !fault.Is(err, fault.InsufficientStorage) {
			t.Fatalf("filling a disk: %v", err)
		}
		must(t, x.Err())
		<-time.After(time.Second)
		const space = 200 << 20 / diskspace.KeptFraction * 3 / 2 // more than what documents need
		if free := 200<<20 - disk.Used(); free < space-2<<20 {
			t.Errorf("an index left %d bytes of %d", free, space)
		}
		if got := len(keysOf(t, x)); got != 16*n {
			t.Errorf("the index holds %d rows, %d were taken", got, 16*n)
		}
		for range 3 { // nothing is added by trying
			used := disk.Used()
			if _, err := fillIndex(t, x, 1<<30, diskspace.LookIndexes); !fault.Is(err, fault.InsufficientStorage) {
				t.Errorf("tried again: %v", err)
			}
			<-time.After(time.Second)
			if more := disk.Used() - used; more > 0 {
				t.Errorf("a retry took %d bytes", more)
			}
		}
		must(t, e.DiskFull())
		putDocs(t, s, w, docsOf{50, 10, func(i int) string { return numbered(100 + i) }})
		disk.Resize(400 << 20)
		<-time.After(diskspace.ResumeAfter)
		if _, err := fillIndex(t, x, 4<<20, 0); err != nil {
			t.Errorf("with space again: %v", err)
		}
		e.Indexes().Release(x)
		must(t, e.Indexes().Drop(testStore, "abc"))
		<-time.After(time.Second)
		if used := disk.Used(); used > 4<<20 {
			t.Errorf("%d bytes are used after the index was removed", used)
		}
		e.Release(s)
	})
}

// TestNoIndexOnFullDisk: on a full disk an index that is there is read, and one that would
// have to be made is refused for that reason, until there is space again.
func TestNoIndexOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 200 << 20
		disk := storagetest.NewSizedFS(vfs.NewMem(), size)
		e, stop := startEngine(t, Options{FS: disk})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, testStore)
		x, err := e.Indexes().Acquire(s, "there")
		must(t, err)
		_, err = fillIndex(t, x, 1<<20, 0)
		must(t, err)
		e.Indexes().Release(x)
		must(t, e.cache.closeIdle(0))
		disk.Resize(disk.Used() + 4<<10)
		<-time.After(time.Second)
		for range 2 {
			if _, err := e.Indexes().Acquire(s, "new"); !fault.Is(err, fault.InsufficientStorage) {
				t.Errorf("a new index: %v", err)
			}
		}
		x, err = e.Indexes().Acquire(s, "there")
		must(t, err)
		if len(keysOf(t, x)) == 0 {
			t.Error("the index that is there has lost its rows")
		}
		e.Indexes().Release(x)
		disk.Resize(size)
		<-time.After(retryAfter + time.Second)
		x, err = e.Indexes().Acquire(s, "new")
		must(t, err)
		e.Indexes().Release(x)
		e.Release(s)
	})
}

// TestLargeBatchLeavesSpace: what indexes have in memory counts as written before it is, so
// that no batch stops its index, however large it is.
func TestLargeBatchLeavesSpace(t *testing.T) {
	storagetest.SkipShort(t)
	synctest.Test(t, func(t *testing.T) {
		const size, kept = 200 << 20, 200 << 20 / diskspace.KeptFraction
		disk := storagetest.NewSizedFS(vfs.NewMem(), size)
		e, stop := startEngine(t, Options{FS: disk})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, testStore)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		rng := rand.NewChaCha8([32]byte{1})
		value := make([]byte, 1<<20)
		taken := 0
		for err == nil {
			b := x.NewBatch(false)
			for i := range 24 {
				_, _ = rng.Read(value)
				b.Set(fmt.Appendf(nil, "k%d-%d", taken, i), value)
			}
			if err = b.Commit(t.Context()); err == nil {
				taken++
			}
			b.Close()
		}
		if !fault.Is(err, fault.InsufficientStorage) || taken < 4 {
			t.Fatalf("after %d batches: %v", taken, err)
		}
		must(t, x.Flush())
		if free := size - disk.Used(); free < kept*3/2 {
			t.Errorf("an index left %d bytes", free)
		}
		if e.env.space.PendingBytes() != 0 {
			t.Errorf("%d bytes wait to be written after a flush", e.env.space.PendingBytes())
		}
		disk.Resize(2 * size)
		<-time.After(diskspace.ResumeAfter + time.Second)
		if _, err := fillIndex(t, x, 1<<20, 0); err != nil || e.env.space.PendingBytes() == 0 {
			t.Errorf("with space again: %v, %d bytes wait to be written", err, e.env.space.PendingBytes())
		}
		e.Indexes().Release(x)
		must(t, e.Indexes().Drop(testStore, "abc"))
		if e.env.space.PendingBytes() != 0 {
			t.Errorf("%d bytes of a removed index wait to be written", e.env.space.PendingBytes())
		}
		e.Release(s)
	})
}

// TestDocumentsFillDisk: when documents take the last byte, their store stops, with
// an error, and is closed and opened again with everything acknowledged.
func TestDocumentsFillDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storagetest.NewSizedFS(vfs.NewMem(), 24<<20)
		e, stop := startEngine(t, Options{FS: silentFS{disk}})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s := take(t, e, testStore)
		w := newEdits()
		rng := rand.NewChaCha8([32]byte{1})
		acked, pad := uint64(0), make([]byte, 96<<10)
		var err error
		for err == nil {
			_, _ = rng.Read(pad)
			b := s.NewBatch()
			w.put(b, edit{id: numbered(int(acked)), body: fmt.Appendf(nil, "%q", bytes.ToValidUTF8(pad, nil))})
			var c *Commit
			if c, err = b.Apply(); err == nil {
				err = c.Wait()
			}
			if err == nil {
				acked++
			}
		}
		if !fault.Is(err, fault.InsufficientStorage) {
			t.Fatalf("filling a disk: %v", err)
		}
		e.Release(s)
		must(t, e.cache.closeIdle(0))
		disk.Resize(64 << 20)
		<-time.After(retryAfter + time.Second)
		s = take(t, e, testStore)
		checkStore(t, s)
		if n := s.Counters().Live; n < acked {
			t.Errorf("%d documents of %d", n, acked)
		}
		writeOne(t, s)
		e.Release(s)
	})
}
