package storage

import (
	"bytes"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/storage/small"
	"divan/storage/storagetest"
)

// TestDroppedSmallStoresGiveSpace: on a full disk of small stores, in use or not, deleting most of them gives
// their space back.
func TestDroppedSmallStoresGiveSpace(t *testing.T) {
	for _, idle := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			disk := storagetest.NewSizedFS(vfs.NewMem(), 4<<30)
			e, stop := startEngine(t, Options{FS: disk, IdleClose: time.Minute})
			defer stop()
			const n, left = 400, 5
			makeSmall(t, e, 0, n, docsOf{10, 1000, numbered})
			if idle {
				<-time.After(5 * time.Minute)
			}
			other, err := disk.Create("other", vfs.WriteCategoryUnspecified)
			must(t, err)
			_, err = other.Write(make([]byte, 62<<20))
			must(t, errors.Join(err, other.Close()))
			before := disk.Used()
			disk.Resize(before * 1000 / 958) // a twentieth is kept
			<-time.After(3 * time.Second)
			if e.DiskFull() == nil {
				t.Fatal("there is space")
			}
			for i := left; i < n; i++ {
				must(t, e.Drop(storeName(i)))
			}
			<-time.After(time.Minute)
			if given := before - disk.Used(); given < 1<<20 || e.DiskFull() != nil {
				t.Errorf("idle %t: %d bytes were given back: %v", idle, given, e.DiskFull())
			}
			s := take(t, e, storeName(0))
			writeOne(t, s)
			e.Release(s)
		})
	}
}

// TestSmallStoresAreReadWithoutSpace: on a disk without a byte, small stores are read although what is dropped
// cannot be removed.
func TestSmallStoresAreReadWithoutSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := storagetest.NewSizedFS(vfs.NewMem(), 4<<30)
		e, stop := startEngine(t, Options{FS: disk, IdleClose: time.Minute})
		defer stop()
		models := makeSmall(t, e, 0, 5, docsOf{10, 10, numbered})
		<-time.After(5 * time.Minute) // all are closed
		disk.Resize(disk.Used())
		<-time.After(3 * time.Second)
		must(t, e.Drop(storeName(4)))
		for round := range 60 {
			for i, w := range models[:4] {
				s := take(t, e, storeName(i))
				w.compare(t, s)
				e.Release(s)
			}
			<-time.After(80*time.Second + time.Duration(round)*time.Second/4) // they are closed, and it was tried again at any time before
		}
		if left, err := disk.List(e.env.path(stagingDir)); err != nil || len(left) != 1 {
			t.Errorf("%q are staged: %v", left, err)
		}
		disk.Resize(4 << 30)
		<-time.After(5 * time.Minute)
		if left, err := disk.List(e.env.path(stagingDir)); err != nil || len(left) != 0 {
			t.Errorf("%q are staged with space: %v", left, err)
		}
	})
}

// TestSmallStoresAreReclaimed: what dropped small stores had leaves the tables, and what was purged does with a
// compaction of the database.
func TestSmallStoresAreReclaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		e, stop := startEngine(t, Options{FS: fs})
		defer stop()
		const purged, dropped = "q8ZtR2mXv7LpKd93", "Xw5NcY1sHb6TgJ40"
		s, w := make([]*Store, 2), newEdits()
		for i, text := range []string{purged, dropped} {
			must(t, e.Create(storeName(i), CreateOptions{CopyID: 1, Small: true}))
			s[i] = take(t, e, storeName(i))
			b := s[i].NewBatch()
			w.put(b, edit{id: text, body: []byte(`{"s":"` + text + `"}`)})
			commit(t, b)
		}
		flushSmall(t, e)
		if !inTables(t, e, purged) || !inTables(t, e, dropped) {
			t.Fatal("not found where it is")
		}
		b := s[0].NewBatch()
		w.purge(b, purged)
		commit(t, b)
		compactStore(t, s[0])
		<-time.After(small.CompactedEvery)
		if inTables(t, e, purged) || !inTables(t, e, dropped) {
			t.Error("compaction leaves what was purged, or takes what was not")
		}
		e.Release(s[0])
		e.Release(s[1])
		must(t, e.Drop(storeName(1)))
		<-time.After(small.RemovedEvery + time.Minute)
		if inTables(t, e, dropped) {
			t.Error("what a dropped store had is there still")
		}
	})
}

// inTables looks for a text in the tables that the small ones have.
func inTables(t *testing.T, e *Engine, text string) (found bool) {
	t.Helper()
	must(t, e.small.with(func(db *pebble.DB) error {
		levels, err := db.SSTables()
		for _, level := range levels {
			for _, table := range level {
				file, err := e.env.o.FS.Open(e.env.path(SmallDir, table.FileNum.String()+".sst"))
				must(t, err)
				all := make([]byte, table.Size)
				_, err = file.ReadAt(all, 0)
				must(t, errors.Join(err, file.Close()))
				found = found || bytes.Contains(all, []byte(text))
			}
		}
		return err
	}))
	return found
}
