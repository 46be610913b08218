package storage

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"

	"divan/storage/fault"
	"divan/storage/small"
	"divan/storage/storagetest"
)

// makeSmall makes small stores with documents and returns their models.
func makeSmall(t *testing.T, e *Engine, first, n int, docs docsOf) (models []*edits) {
	t.Helper()
	for i := range n {
		must(t, e.Create(storeName(first+i), CreateOptions{CopyID: 1}))
		s := take(t, e, storeName(first+i))
		w := newEdits()
		putDocs(t, s, w, docs)
		if s.small.Load() == nil {
			t.Fatal("it is not small")
		}
		e.Release(s)
		models = append(models, w)
	}
	return models
}

func flushSmall(t *testing.T, e *Engine) {
	t.Helper()
	must(t, e.withSmall(func(db *pebble.DB) error { return db.Flush() }))
}

// damageTables damages a byte in each table of the small ones.
func damageTables(t *testing.T, fs *vfs.MemFS) {
	t.Helper()
	files, err := fs.List("data/" + SmallDir)
	must(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, ".sst") {
			damage(t, fs, path.Join("data", SmallDir, f))
		}
	}
}

// TestDamageIsWrittenOut: a damaged block of the small ones, which no compaction can read, costs the stores that are
// in it; all others are written to again when the files are made anew, and stay so after a restart.
func TestDamageIsWrittenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		e, stop := startEngine(t, Options{FS: fs})
		const n = 20
		models := makeSmall(t, e, 0, n, docsOf{10, 10, numbered})
		flushSmall(t, e)
		stop()
		damageTables(t, fs)
		before, err := fs.List("data/" + SmallDir)
		must(t, err)
		e, stop = startEngine(t, Options{FS: fs, Logger: zap.NewNop()})
		var failed error
		var made []string
		for i := 0; e.small.Begun.Load() == 0 && i < 40; i++ {
			for j := range 4 { // they span the keys, as many stores do
				name := storeName(1000 + 10*i + j)
				if err := e.Create(name, CreateOptions{CopyID: 1}); err == nil {
					made = append(made, name)
				} else {
					failed = err
				}
			}
			if failed == nil {
				flushSmall(t, e)
			}
		}
		if e.small.Begun.Load() == 0 {
			t.Fatalf("compactions read what is damaged: %v", failed)
		}
		<-time.After(2 * retryAfter)
		for range 2 {
			damaged := 0
			for i := range n {
				s, err := e.Acquire(storeName(i))
				switch {
				case fault.Is(err, fault.Corruption):
					damaged++
					continue
				case err != nil:
					t.Fatal(err)
				}
				models[i].compare(t, s)
				writeOne(t, s)
				e.Release(s)
			}
			if damaged == 0 || damaged > n/2 {
				t.Errorf("%d of %d stores are damaged", damaged, n)
			}
			for i := range 60 {
				if s, err := e.Acquire(made[i%len(made)]); err == nil {
					writeOne(t, s)
					e.Release(s)
				} else if !fault.Is(err, fault.Corruption) { // its keys would be among the damaged ones
					t.Fatal(err)
				}
				flushSmall(t, e)
			}
			stop()
			e, stop = startEngine(t, Options{FS: fs})
		}
		stop()
		checkKept(t, fs, before)
	})
}

// TestRewriteWithOpenStores: stores that are open lose nothing when files are written anew that cannot be read, and
// while that fails they are read, and written to.
func TestRewriteWithOpenStores(t *testing.T) {
	for _, c := range []struct {
		name            string
		damaged, failed bool
	}{{"damaged", true, false}, {"not read", false, false}, {"no room at first", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rewriteWithOpenStores(t, c.damaged, c.failed) })
		})
	}
}

func rewriteWithOpenStores(t *testing.T, damaged, failed bool) {
	t.Helper()
	base := vfs.NewMem()
	var unread sync.Map // tables
	var full atomic.Bool
	fs := errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch _, bad := unread.Load(op.Path); {
		case bad && op.Kind == errorfs.OpFileReadAt && op.Offset == 0: // its first block
			return syscall.EIO
		case full.Load() && op.Kind == errorfs.OpCreate && strings.Contains(op.Path, SmallDir+"/rewrite."):
			return syscall.ENOSPC
		}
		return nil
	}))
	full.Store(failed)
	e, stop := startEngine(t, Options{FS: fs, Logger: zap.NewNop()})
	const n = 20
	models := makeSmall(t, e, 0, n, docsOf{3, 3, numbered})
	must(t, e.Create(storeName(n), CreateOptions{CopyID: 1})) // one without a batch
	models = append(models, newEdits())
	open := make([]*Store, n+1)
	for i := range open {
		open[i] = take(t, e, storeName(i))
	}
	flushSmall(t, e)
	if damaged {
		damageTables(t, base)
	} else {
		files, err := base.List("data/" + SmallDir)
		must(t, err)
		for _, f := range files {
			if strings.HasSuffix(f, ".sst") {
				unread.Store(path.Join("data", SmallDir, f), nil)
			}
		}
	}
	held := open[0].NewBatch() // it is under way when the instance ends
	models[0].put(held, edit{id: "held", body: []byte(`{}`)})
	made := 1000
	makeUntil := func(done func() bool) {
		for until := made + 200; !done(); made++ {
			if made == until {
				t.Fatal("compactions read what is damaged")
			}
			if err := e.Create(storeName(made), CreateOptions{CopyID: 1}); err == nil {
				flushSmall(t, e)
			}
			<-time.After(retryAfter)
		}
	}
	makeUntil(e.small.Damaged.Load)
	commit(t, held)
	makeUntil(func() bool { return e.small.Begun.Load() > 0 })
	if failed {
		writeAll(t, open[:n/2], models)
		full.Store(false)
		<-time.After(2 * rewriteAgain)
	}
	makeUntil(func() bool { return !e.small.Damaged.Load() }) // what is not read is tried some times
	writeAll(t, open, models)
	for _, s := range open {
		e.Release(s)
	}
	stop()
	e, stop = startEngine(t, Options{FS: fs})
	defer stop()
	for i := range open {
		s := take(t, e, storeName(i))
		models[i].compare(t, s)
		e.Release(s)
	}
}

// writeAll writes to each store.
func writeAll(t *testing.T, stores []*Store, models []*edits) {
	t.Helper()
	for i, s := range stores {
		b := s.NewBatch()
		models[i].put(b, edit{id: "later", body: []byte(`{"n":1}`)})
		commit(t, b)
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(string, ...any)          {}
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// checkKept wants that the tables of before a rewrite are set aside once, and can be opened.
func checkKept(t *testing.T, fs *vfs.MemFS, before []string) {
	t.Helper()
	aside, err := fs.List("data/" + OrphanedDir)
	must(t, err)
	if len(aside) != 1 || aside[0] != SmallDir+".1" {
		t.Fatalf("set aside: %q", aside)
	}
	dir := path.Join("data", OrphanedDir, aside[0])
	kept, err := fs.List(dir)
	must(t, err)
	for _, f := range before {
		if strings.HasSuffix(f, ".sst") && !slices.Contains(kept, f) {
			t.Errorf("table %s is not kept", f)
		}
	}
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, ReadOnly: true, Logger: quiet{}})
	must(t, err)
	must(t, db.Close())
}

// TestDamagedManifest: an instance that cannot be opened is tried once in a while, whatever is asked for.
func TestDamagedManifest(t *testing.T) {
	base := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: base})
	makeSmall(t, e, 0, 20, docsOf{1, 1, numbered})
	flushSmall(t, e)
	stop()
	files, err := base.List("data/" + SmallDir)
	must(t, err)
	for _, f := range files {
		if strings.HasPrefix(f, "MANIFEST") {
			file, err := base.OpenReadWrite(path.Join("data", SmallDir, f), vfs.WriteCategoryUnspecified)
			must(t, err)
			_, err = file.WriteAt([]byte{0xff}, 20)
			must(t, errors.Join(err, file.Close()))
		}
	}
	var reads atomic.Int64
	fs := errorfs.Wrap(base, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.Contains(op.Path, SmallDir+"/MANIFEST") {
			reads.Add(1)
		}
		return nil
	}))
	synctest.Test(t, func(t *testing.T) {
		e, stop := startEngine(t, Options{FS: fs})
		defer stop()
		for i := range 100 {
			if s, err := e.Acquire(storeName(i % 20)); err == nil {
				e.Release(s)
				t.Fatal("it can be opened")
			}
		}
		if n := reads.Load(); n != 1 {
			t.Errorf("the manifest was opened %d times in no time", n)
		}
	})
}

// TestDroppedSmallStoresGiveRoom: on a full disk of small stores, in use or not, deleting most of them gives
// their room back.
func TestDroppedSmallStoresGiveRoom(t *testing.T) {
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
				t.Fatal("there is room")
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

// TestSmallStoresAreReadWithoutRoom: on a disk without a byte, small stores are read although what is dropped
// cannot be removed.
func TestSmallStoresAreReadWithoutRoom(t *testing.T) {
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
		if left, err := disk.List(e.path(stagingDir)); err != nil || len(left) != 1 {
			t.Errorf("%q are staged: %v", left, err)
		}
		disk.Resize(4 << 30)
		<-time.After(5 * time.Minute)
		if left, err := disk.List(e.path(stagingDir)); err != nil || len(left) != 0 {
			t.Errorf("%q are staged with room: %v", left, err)
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
			must(t, e.Create(storeName(i), CreateOptions{CopyID: 1}))
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
		<-time.After(reclaimAsked)
		if inTables(t, e, purged) || !inTables(t, e, dropped) {
			t.Error("compaction leaves what was purged, or takes what was not")
		}
		e.Release(s[0])
		e.Release(s[1])
		must(t, e.Drop(storeName(1)))
		<-time.After(reclaimEvery + time.Minute)
		if inTables(t, e, dropped) {
			t.Error("what a dropped store had is there still")
		}
	})
}

// inTables looks for a text in the tables that the small ones have.
func inTables(t *testing.T, e *Engine, text string) (found bool) {
	t.Helper()
	must(t, e.withSmall(func(db *pebble.DB) error {
		levels, err := db.SSTables()
		for _, level := range levels {
			for _, table := range level {
				file, err := e.o.FS.Open(e.path(SmallDir, table.FileNum.String()+".sst"))
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

// TestInterruptedLeave: the shared instance fails after a store has its own, and before it is no longer among the
// small ones. Nothing stays there.
func TestInterruptedLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := vfs.NewMem()
		var on atomic.Bool
		e, stop := startEngine(t, Options{FS: failing(base, &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
			return strings.Contains(op.Path, SmallDir) && strings.HasSuffix(op.Path, ".log")
		}), Logger: zap.NewNop()})
		must(t, e.Create(storeName(0), CreateOptions{CopyID: 1}))
		s := take(t, e, storeName(0))
		uuid, w := s.UUID(), newEdits()
		putDocs(t, s, w, docsOf{20, 10, numbered})
		on.Store(true)
		b := s.NewBatch()
		w.put(b, edit{id: "large", body: noise(2*small.MaxBytes, 1)})
		commit(t, b)
		if !s.inst.Opened() || !s.mayBeSmall.Load() {
			t.Fatal("it has no instance, or the shared one took the removal")
		}
		e.Release(s)
		on.Store(false)
		stop()
		e, stop = startEngine(t, Options{FS: base})
		defer stop()
		s = take(t, e, storeName(0))
		w.compare(t, s)
		e.Release(s)
		if n, there := amongSmall(t, e, uuid); there {
			t.Errorf("%d bytes are among the small ones still", n)
		}
	})
}

// TestFailedCreationLeavesNothing: a store whose directory cannot be made is not among the small ones.
func TestFailedCreationLeavesNothing(t *testing.T) {
	var on atomic.Bool
	e, _ := startEngine(t, Options{FS: failing(vfs.NewMem(), &on, errorfs.ErrInjected, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpMkdirAll && strings.HasSuffix(op.Path, "db1.1")
	})})
	makeSmall(t, e, 0, 1, docsOf{1, 1, numbered})
	keys := func() (n int) {
		must(t, e.withSmall(func(db *pebble.DB) error {
			it, err := db.NewIter(nil)
			must(t, err)
			for ok := it.First(); ok; ok = it.Next() {
				n++
			}
			return it.Close()
		}))
		return n
	}
	before := keys()
	on.Store(true)
	if err := e.Create(storeName(1), CreateOptions{CopyID: 1}); err == nil {
		t.Fatal("it was made")
	}
	if n := keys(); n != before {
		t.Errorf("%d keys, %d before", n, before)
	}
}

// TestLongIDsLeave: what sequences and heads add to a batch counts for whether a store is small.
func TestLongIDsLeave(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1})
	w, b := newEdits(), s.NewBatch()
	for i := range 7 {
		w.put(b, edit{id: strings.Repeat("a", 4000) + string(rune('0'+i))})
	}
	commit(t, b)
	if v := s.small.Load(); v != nil {
		t.Errorf("it is small with %d bytes, %d allowed", v.Len(), small.MaxBytes)
	}
	w.compare(t, s)
}

// TestSmallStoresOpenByWeight: small stores stay open by what they weigh, not by their number, and those
// with an instance of their own by number.
func TestSmallStoresOpenByWeight(t *testing.T) {
	e, _ := startEngine(t, Options{FS: vfs.NewMem(), MaxOpen: 2})
	const n = 300
	makeSmall(t, e, 0, n, docsOf{1, 1, numbered})
	if got := e.OpenStores(); got < n {
		t.Errorf("%d stores are open, want %d", got, n)
	}
	e.mu.Lock()
	each := e.mu.small / n
	e.mu.Unlock()
	if each < 8<<10 || each > 16<<10 {
		t.Errorf("a small store weighs %d bytes", each)
	}
	for i := range int(maxSmallOpen/each) + 10 - n {
		makeSmall(t, e, n+i, 1, docsOf{1, 1, numbered})
	}
	e.mu.Lock()
	total, open := e.mu.small, e.mu.openSmall
	e.mu.Unlock()
	if total > maxSmallOpen || total < maxSmallOpen*9/10 {
		t.Errorf("%d small stores weigh %d bytes, at most %d", open, total, maxSmallOpen)
	}
	s := take(t, e, storeName(0)) // closed long since
	b := s.NewBatch()
	newEdits().put(b, edit{id: "large", body: noise(2*small.MaxBytes, 1)})
	commit(t, b)
	e.Release(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.open != 2 || s.weight != 0 { // its own and the shared one
		t.Errorf("%d instances are open, the store that left weighs %d", e.mu.open, s.weight)
	}
}
