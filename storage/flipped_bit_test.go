package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/fault"
	"divan/storage/format"
	"divan/storage/instance"
)

// copyFiles returns a file system with the same files.
func copyFiles(t *testing.T, from vfs.FS) *vfs.MemFS {
	t.Helper()
	to := vfs.NewMem()
	_, err := vfs.Clone(from, to, "data", "data")
	must(t, err)
	return to
}

// flipBits flips bits of a file.
func flipBits(t *testing.T, fs vfs.FS, name string, bits ...int64) {
	t.Helper()
	f, err := fs.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	must(t, err)
	for _, bit := range bits {
		var one [1]byte
		_, err = f.ReadAt(one[:], bit/8)
		must(t, err)
		one[0] ^= 1 << (bit % 8)
		_, err = f.WriteAt(one[:], bit/8)
		must(t, err)
	}
	must(t, f.Close())
}

// blocksOf returns where the blocks of a table are, by what they are.
func blocksOf(t *testing.T, fs vfs.FS, name string) map[string][2]int64 {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	readable, err := sstable.NewSimpleReadable(f)
	must(t, err)
	o := &pebble.Options{Merger: format.SumsMerger()}
	o.EnsureDefaults()
	ro := o.MakeReaderOptions()
	ro.Mergers = sstable.Mergers{pebble.DefaultMerger.Name: pebble.DefaultMerger}
	r, err := sstable.NewReader(t.Context(), readable, ro)
	must(t, err)
	l, err := r.Layout()
	must(t, err)
	out := map[string][2]int64{}
	add := func(kind string, offset, length uint64) {
		if length > 0 {
			out[kind] = [2]int64{int64(offset), int64(length + 5)}
		}
	}
	for i := range l.Data {
		add(fmt.Sprint("data ", i), l.Data[i].Offset, l.Data[i].Length)
	}
	for _, h := range l.Index {
		add("index", h.Offset, h.Length)
	}
	for _, h := range l.Filter {
		add("filter", h.Offset, h.Length)
	}
	add("top index", l.TopIndex.Offset, l.TopIndex.Length)
	add("deleted ranges", l.RangeDel.Offset, l.RangeDel.Length)
	add("properties", l.Properties.Offset, l.Properties.Length)
	add("metaindex", l.MetaIndex.Offset, l.MetaIndex.Length)
	out["footer"] = [2]int64{int64(l.Footer.Offset), int64(l.Footer.Length)}
	must(t, r.Close())
	return out
}

// place is a file, and a part of it that is damaged.
type place struct {
	file, what    string
	begin, length int64
	closed        bool // the file of a node that was stopped
}

// placesOf returns all places of the files of an instance that have a checksum.
func placesOf(t *testing.T, fs vfs.FS, dir string) (all []place) {
	t.Helper()
	files, err := fs.List(dir)
	must(t, err)
	for _, f := range files {
		name := path.Join(dir, f)
		switch {
		case strings.HasSuffix(f, ".sst"):
			for kind, at := range blocksOf(t, fs, name) {
				all = append(all, place{file: name, what: kind, begin: at[0], length: at[1]})
			}
		case strings.HasSuffix(f, ".log"), strings.HasPrefix(f, "MANIFEST"):
			if size := int64(len(strings.TrimRight(string(content(t, fs, name)), "\x00"))); size > 0 {
				all = append(all, place{file: name, what: f[len(f)-3:], length: size})
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("nothing to damage")
	}
	return all
}

// TestFlippedBit: a bit of a file of the small stores, or of a large one, that is another one is set right: nothing is
// lost, and an idle node says it in a few lines.
func TestFlippedBit(t *testing.T) {
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	const n = 20
	models := makeSmall(t, e, 0, n, docsOf{10, 10, numbered})
	flushSmall(t, e)
	must(t, e.Create(storeName(n), CreateOptions{CopyID: 1, Small: true}))
	models = append(models, newEdits())
	large := take(t, e, storeName(n))
	for range 5 {
		putDocs(t, large, models[n], docsOf{20, 1000, numbered})
	}
	must(t, large.inst.Flush())
	for i := range n {
		s := take(t, e, storeName(i))
		putDocs(t, s, models[i], docsOf{3, 10, numbered}) // into the log
		e.Release(s)
	}
	putDocs(t, large, models[n], docsOf{3, 10, numbered})
	crashed := live.CrashClone(vfs.CrashCloneCfg{})
	one := take(t, e, storeName(0))
	writeOne(t, one) // behind all that is damaged of a log, so that it is known that it was durable
	e.Release(one)
	writeOne(t, large)
	e.Release(large)
	base := live.CrashClone(vfs.CrashCloneCfg{})
	stop()
	closed := live.CrashClone(vfs.CrashCloneCfg{})
	random := rand.New(rand.NewPCG(1, 2))
	for _, dir := range []string{path.Join("data", SmallDir), e.env.path(storeName(n))} {
		all := placesOf(t, base, dir)
		for i := range all {
			if instance.IsLog(all[i].file) { // not the last write: see TestEndOfLog
				all[i].length = min(all[i].length, int64(len(content(t, crashed, all[i].file))))
			}
		}
		for _, p := range placesOf(t, closed, dir) {
			if p.closed = true; instance.IsLog(p.file) {
				all = append(all, p)
			}
		}
		for _, p := range all {
			base := base
			if p.closed {
				base = closed
			}
			for range 3 {
				bit := 8*p.begin + random.Int64N(8*p.length)
				t.Run(fmt.Sprint(path.Base(p.file), " ", p.what, " ", bit), func(t *testing.T) {
					fs := copyFiles(t, base)
					flipBits(t, fs, p.file, bit)
					synctest.Test(t, func(t *testing.T) { allThere(t, fs, models) })
				})
			}
		}
	}
}

// allThere checks that stores have what they should some seconds after a start, whether they are read or written to.
func allThere(t *testing.T, fs vfs.FS, models []*edits) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	e, stop := startEngine(t, Options{FS: fs, Logger: zap.New(core)})
	defer stop()
	s, err := e.Acquire(storeName(0)) // opens the shared instance
	if err == nil {
		e.Release(s)
	}
	allThereOf(t, e, models)
	if n := logs.Len(); n > 20 {
		t.Errorf("%d lines are logged, the last is %v", n, logs.All()[n-1])
	}
}

// allThereOf is allThere for an engine that runs.
func allThereOf(t *testing.T, e *Engine, models []*edits) {
	t.Helper()
	<-time.After(10 * time.Second)
	for i := range models {
		s, err := e.Acquire(storeName(i))
		if err != nil && i == len(models)-1 { // what stopped when it met the damage
			<-time.After(2 * retryAfter)
			s, err = e.Acquire(storeName(i))
		}
		if err != nil {
			t.Fatal(i, err)
		}
		if s.Check(t.Context(), func(string) {}) != nil {
			e.Release(s)
			<-time.After(2 * retryAfter)
			s, err = e.Acquire(storeName(i))
			must(t, err)
		}
		checkStore(t, s)
		models[i].compare(t, s)
		e.Release(s)
	}
	if e.Stats().SmallDamaged || len(e.Losses().Contents()) > 0 {
		t.Errorf("damaged at the end; lost are %q", e.Losses().Contents())
	}
}

// TestFlippedBitOnFullDisk: a bit that cannot be set right while the disk is full is set right once there is space.
// Nothing is taken for lost meanwhile, or written anew without it.
func TestFlippedBitOnFullDisk(t *testing.T) {
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	const n = 5
	models := makeSmall(t, e, 0, n, docsOf{10, 10, numbered})
	flushSmall(t, e)
	must(t, e.Create(storeName(n), CreateOptions{CopyID: 1, Small: true}))
	models = append(models, newEdits())
	large := take(t, e, storeName(n))
	putDocs(t, large, models[n], docsOf{100, 1000, numbered})
	must(t, large.inst.Flush())
	dirs := []string{path.Join("data", SmallDir), e.env.path(storeName(n))}
	e.Release(large)
	stop()
	base := live.CrashClone(vfs.CrashCloneCfg{})
	for _, dir := range dirs {
		for _, p := range placesOf(t, base, dir) {
			if !strings.HasSuffix(p.file, ".sst") || !strings.HasPrefix(p.what, "data") && p.what != "index" {
				continue
			}
			t.Run(fmt.Sprint(path.Base(dir), " ", path.Base(p.file), " ", p.what), func(t *testing.T) {
				fs := copyFiles(t, base)
				flipBits(t, fs, p.file, 8*p.begin+13)
				synctest.Test(t, func(t *testing.T) { mendedWithSpace(t, fs, p.file, models) })
			})
		}
	}
}

func mendedWithSpace(t *testing.T, fs vfs.FS, table string, models []*edits) {
	t.Helper()
	var full atomic.Bool
	full.Store(true)
	core, logs := observer.New(zapcore.WarnLevel)
	e, stop := startEngine(t, Options{Logger: zap.New(core), FS: failing(fs, &full, syscall.ENOSPC, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpCreate && path.Base(op.Path) == "temporary."+strings.TrimSuffix(path.Base(table), ".sst")+".dbtmp"
	})})
	defer stop()
	refused := false
	for range 45 { // longer than for all tries at what the disk does not read
		must(t, e.FindLost(t.Context()))
		for i := range models {
			s, err := e.Acquire(storeName(i))
			if err == nil {
				err = s.Check(t.Context(), func(string) {})
				e.Release(s)
			}
			if errors.Is(err, ErrLost) {
				t.Fatal(i, err)
			}
			refused = refused || err != nil
		}
		<-time.After(4 * time.Second)
	}
	if !refused || len(e.Losses().Contents()) > 0 {
		t.Errorf("all was read: %t; lost are %q", !refused, e.Losses().Contents())
	}
	full.Store(false)
	<-time.After(time.Minute)
	allThereOf(t, e, models)
	if n := logs.Len(); n > 100 {
		t.Errorf("%d lines are logged, the last is %v", n, logs.All()[n-1])
	}
}

// TestDamageBeyondABit: where more than a bit is another one, each store has all that it had or is lost, and no other
// file than those that were damaged matters; nothing is logged over and over.
func TestDamageBeyondABit(t *testing.T) {
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	const n = 20
	models := makeSmall(t, e, 0, n, docsOf{10, 10, numbered})
	flushSmall(t, e)
	more := makeSmall(t, e, n, n, docsOf{10, 10, numbered})
	base := live.CrashClone(vfs.CrashCloneCfg{})
	stop()
	for _, p := range placesOf(t, base, path.Join("data", SmallDir)) {
		t.Run(fmt.Sprint(path.Base(p.file), " ", p.what), func(t *testing.T) {
			fs := copyFiles(t, base)
			middle := 8 * (p.begin + p.length/2)
			flipBits(t, fs, p.file, middle, middle+3, middle+9, middle+17)
			synctest.Test(t, func(t *testing.T) { thereOrLost(t, fs, append(models, more...)) })
		})
	}
}

// TestFlippedBitBesideLargerDamage: a table with a flipped bit that is met while what can be read is written anew,
// because another table is damaged for good, is set right first.
func TestFlippedBitBesideLargerDamage(t *testing.T) {
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	const n = 20
	models := makeSmall(t, e, 0, n, docsOf{10, 10, numbered})
	flushSmall(t, e)
	models = append(models, makeSmall(t, e, n, n, docsOf{10, 10, numbered})...)
	flushSmall(t, e)
	stop()
	base := live.CrashClone(vfs.CrashCloneCfg{})
	var data []place
	for _, p := range placesOf(t, base, path.Join("data", SmallDir)) {
		if strings.HasPrefix(p.what, "data") {
			data = append(data, p)
		}
	}
	for i, worse := range data {
		damaged := copyFiles(t, base)
		middle := 8 * (worse.begin + worse.length/2)
		flipBits(t, damaged, worse.file, middle, middle+3, middle+9, middle+17)
		if testing.Short() && i%3 > 0 {
			continue
		}
		var alone []int
		synctest.Test(t, func(t *testing.T) { alone = lostOf(t, copyFiles(t, damaged), models) })
		for _, p := range data {
			if p.file == worse.file {
				continue
			}
			t.Run(fmt.Sprint(path.Base(worse.file), " ", worse.what, " ", path.Base(p.file), " ", p.what), func(t *testing.T) {
				fs := copyFiles(t, damaged)
				flipBits(t, fs, p.file, 8*p.begin+13)
				synctest.Test(t, func(t *testing.T) {
					if lost := lostOf(t, fs, models); !slices.Equal(lost, alone) {
						t.Errorf("%d are lost, and %d without the flipped bit", lost, alone)
					}
				})
			})
		}
	}
}

// lostOf returns which stores are lost, and checks that others have what they should.
func lostOf(t *testing.T, fs vfs.FS, models []*edits) (lost []int) {
	t.Helper()
	e, stop := startEngine(t, Options{FS: fs})
	defer stop()
	for range 4 {
		lost = lost[:0]
		for i := range models {
			s, err := e.Acquire(storeName(i))
			switch {
			case err == nil:
				models[i].compare(t, s)
				e.Release(s)
			case errors.Is(err, ErrLost):
				lost = append(lost, i)
			}
		}
		<-time.After(time.Minute)
	}
	return lost
}

// TestUnreadBlockOfSmallStores: what the disk refuses to read of small stores is unavailable, and
// lost after some minutes; other stores are not.
func TestUnreadBlockOfSmallStores(t *testing.T) {
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	const n = 20
	models := makeSmall(t, e, 0, n, docsOf{10, 10, numbered})
	flushSmall(t, e)
	stop()
	base := live.CrashClone(vfs.CrashCloneCfg{})
	for _, p := range placesOf(t, base, path.Join("data", SmallDir)) {
		if !strings.HasPrefix(p.what, "data") {
			continue
		}
		t.Run(p.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unreadThenLost(t, copyFiles(t, base), p, models) })
		})
	}
}

func unreadThenLost(t *testing.T, fs vfs.FS, p place, models []*edits) {
	t.Helper()
	var on atomic.Bool
	on.Store(true)
	e, stop := startEngine(t, Options{FS: failing(fs, &on, syscall.EIO, func(op errorfs.Op) bool {
		return op.Kind == errorfs.OpFileReadAt && op.Path == p.file && op.Offset >= p.begin && op.Offset < p.begin+p.length
	})})
	defer stop()
	lost := 0
	for round := range 10 {
		lost = 0
		for i := range models {
			s, err := e.Acquire(storeName(i))
			switch {
			case err == nil:
				models[i].compare(t, s)
				e.Release(s)
			case errors.Is(err, ErrLost):
				lost++
			case fault.KindOf(err) != fault.Unavailable:
				t.Errorf("round %d: %v", round, err)
			}
		}
		<-time.After(time.Minute)
	}
	if lost == 0 || lost == len(models) {
		t.Errorf("%d of %d stores are lost", lost, len(models))
	}
}

// TestLargeDamageBeyondABit: a store of its own that is damaged beyond a bit is refused as one that
// cannot be read, never as a fault of the program.
func TestLargeDamageBeyondABit(t *testing.T) {
	live := vfs.NewCrashableMem()
	e, stop := startEngine(t, Options{FS: live})
	must(t, e.Create(storeName(0), CreateOptions{CopyID: 1, Small: true}))
	model := newEdits()
	large := take(t, e, storeName(0))
	putDocs(t, large, model, docsOf{100, 1000, numbered})
	must(t, large.inst.Flush())
	dir := e.env.path(storeName(0))
	e.Release(large)
	stop()
	base := live.CrashClone(vfs.CrashCloneCfg{})
	for _, p := range placesOf(t, base, dir) {
		t.Run(fmt.Sprint(path.Base(p.file), " ", p.what), func(t *testing.T) {
			fs := copyFiles(t, base)
			middle := 8 * (p.begin + p.length/2)
			flipBits(t, fs, p.file, middle, middle+3, middle+9, middle+17)
			synctest.Test(t, func(t *testing.T) {
				e, stop := startEngine(t, Options{FS: fs})
				defer stop()
				for range 10 {
					if s, err := e.Acquire(storeName(0)); err == nil {
						_ = s.Check(t.Context(), func(string) {})
						e.Release(s)
					} else if fault.KindOf(err) == fault.Internal {
						t.Fatal(err)
					}
					<-time.After(retryAfter)
				}
			})
		})
	}
}

func thereOrLost(t *testing.T, fs vfs.FS, models []*edits) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	e, stop := startEngine(t, Options{FS: fs, Logger: zap.New(core)})
	defer stop()
	must(t, e.FindLost(t.Context()))
	<-time.After(10 * time.Second)
	lost := 0
	for i := range models {
		s, err := e.Acquire(storeName(i))
		if errors.Is(err, ErrLost) {
			if lost++; !e.Losses().Lost(storeName(i)) || e.Catalog().Has(storeName(i)) {
				t.Errorf("store %d is not lost: %v", i, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(i, err)
		}
		models[i].compare(t, s)
		e.Release(s)
	}
	if n := logs.Len(); n > 10+2*len(models) {
		t.Errorf("%d lines are logged, the last is %v", n, logs.All()[n-1])
	}
	must(t, e.Create(storeName(len(models)), CreateOptions{CopyID: 1, Small: true}))
	t.Logf("%d of %d are lost", lost, len(models))
}
