package storage

import (
	"context"
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

	"divan/storage/small"
)

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
		for i := 0; e.small.damage.Begun() == 0 && i < 40; i++ {
			for j := range 4 { // they span the keys, as many stores do
				name := storeName(1000 + 10*i + j)
				if err := e.Create(name, CreateOptions{CopyID: 1, Small: true}); err == nil {
					made = append(made, name)
				} else {
					failed = err
				}
			}
			if failed == nil {
				flushSmall(t, e)
			}
		}
		if e.small.damage.Begun() == 0 {
			t.Fatalf("compactions read what is damaged: %v", failed)
		}
		<-time.After(2 * retryAfter)
		for range 2 {
			damaged := 0
			for i := range n {
				s, err := e.Acquire(storeName(i))
				switch {
				case errors.Is(err, ErrLost):
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
				} else if !errors.Is(err, ErrLost) { // its keys would be among the damaged ones
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
	}{{"damaged", true, false}, {"not read", false, false}, {"no space at first", true, true}} {
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
	must(t, e.Create(storeName(n), CreateOptions{CopyID: 1, Small: true})) // one without a batch
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
			if err := e.Create(storeName(made), CreateOptions{CopyID: 1, Small: true}); err == nil {
				flushSmall(t, e)
			}
			<-time.After(retryAfter)
		}
	}
	reclaims, end := context.WithCancel(context.Background())
	var reclaim sync.WaitGroup
	reclaim.Go(func() { // it must not hold the end of the instance up
		for reclaims.Err() == nil {
			(&smallReclaimer{host: e.small}).compact(reclaims, small.Slices(1))
			<-time.After(retryAfter)
		}
	})
	makeUntil(func() bool { return e.Stats().SmallDamaged })
	commit(t, held)
	makeUntil(func() bool { return e.small.damage.Begun() > 0 })
	if failed {
		writeAll(t, open[:n/2], models)
		full.Store(false)
		<-time.After(2 * rewriteAgain)
	}
	makeUntil(func() bool { return !e.Stats().SmallDamaged }) // what is not read is tried some times
	end()
	reclaim.Wait()
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

// TestDamagedManifest: an instance that cannot be opened is tried only once in a while, no matter
// which requests come.
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
