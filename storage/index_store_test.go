package storage

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/diskspace"
	"divan/storage/fault"
	"divan/storage/identity"
	"divan/storage/instance"
	"divan/storage/storagetest"
)

// The disk usage of a store is that of its indexes too.
func TestDiskUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, stop := startEngine(t, Options{FS: vfs.NewMem()})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(testStore)
		must(t, err)
		defer e.Release(s)
		putDocs(t, s, newEdits(), docsOf{1000, 100, numbered})
		must(t, s.inst.DB().Flush())
		synctest.Wait() // the store goes on writing to its log and its manifest after the flush
		own, err := e.Catalog().DiskUsage(testStore)
		if size, _ := e.Catalog().FileSize(testStore); err != nil || own != size {
			t.Errorf("without an index: %d, %v; the store has %d", own, err, size)
		}
		for _, signature := range []string{"one", "two"} {
			x, err := e.Indexes().Acquire(s, signature)
			must(t, err)
			defer e.Indexes().Release(x)
			setKeys(t, x, strings.Repeat(signature, 20_000))
			must(t, x.inst.DB().Flush())
		}
		synctest.Wait()
		if all, err := e.Catalog().DiskUsage(testStore); err != nil || all < own+100_000 {
			t.Errorf("with two indexes: %d, %v; %d without", all, err, own)
		}
		if _, err := e.Catalog().DiskUsage("shards/nothing"); !fault.Is(err, fault.NoCopy) {
			t.Errorf("DiskUsage of nothing: %v", err)
		}
	})
}

// openIndex acquires an index until the test ends.
func openIndex(tb testing.TB, s *Store, signature string) *Index {
	tb.Helper()
	x, err := s.engine.Indexes().Acquire(s, signature)
	must(tb, err)
	tb.Cleanup(func() { s.engine.Indexes().Release(x) })
	return x
}

// keysOf lists what an index holds, as "key=value".
func keysOf(tb testing.TB, x *Index) (out []string) {
	tb.Helper()
	snap, err := x.Snapshot()
	must(tb, err)
	defer snap.Close()
	it, err := snap.Iterate(nil, nil)
	must(tb, err)
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		must(tb, err)
		out = append(out, string(it.Key())+"="+string(v))
	}
	must(tb, it.Close())
	return out
}

// setKeys commits one batch.
func setKeys(tb testing.TB, x *Index, keys ...string) {
	tb.Helper()
	b := x.NewBatch(false)
	defer b.Close()
	for _, k := range keys {
		b.Set([]byte(k), []byte(k+"!"))
	}
	must(tb, b.Commit(tb.Context()))
}

func TestIndexKeys(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	x := openIndex(t, s, "abc")
	setKeys(t, x, "a", "b", "c", "d")
	before, err := x.Snapshot()
	must(t, err)
	b := x.NewBatch(false)
	b.Delete([]byte("a"))
	b.DeleteRange([]byte("b"), []byte("d"))
	if b.Len() == 0 {
		t.Error("a batch with two changes is empty")
	}
	must(t, b.Commit(t.Context()))
	b.Close()
	if got := keysOf(t, x); !slices.Equal(got, []string{"d=d!"}) {
		t.Errorf("the index holds %v", got)
	}
	if v, ok, err := before.Get([]byte("x"), []byte("c")); string(v) != "xc!" || !ok || err != nil {
		t.Errorf("the snapshot before: %q, %t, %v", v, ok, err)
	}
	it, err := before.Iterate([]byte("b"), []byte("d"))
	must(t, err)
	if !it.Last() || string(it.Key()) != "c" || !it.Prev() || string(it.Key()) != "b" || it.Prev() || !it.SeekGE([]byte("bb")) || string(it.Key()) != "c" || !it.SeekLT([]byte("c")) {
		t.Errorf("the iterator stands on %q, %v", it.Key(), it.Err())
	}
	if it.SetBounds([]byte("d"), nil); !it.First() || string(it.Key()) != "d" {
		t.Errorf("the iterator stands on %q", it.Key())
	}
	must(t, it.Close())
	before.Close()
	before.Close()
	other := openIndex(t, s, "other")
	if got := keysOf(t, other); len(got) > 0 {
		t.Errorf("another index holds %v", got)
	}
	must(t, x.Compact(t.Context()))
	if size, err := x.FileSize(); size == 0 || err != nil {
		t.Errorf("size %d, %v", size, err)
	}
	all, err := s.engine.Indexes().Signatures(testStore)
	if err != nil || !slices.Equal(all, []string{"abc", "other"}) {
		t.Errorf("indexes %v, %v", all, err)
	}
}

// TestIndexOutlivesItsOpening: what was committed is there after the index was
// closed for lack of use, and after a restart.
func TestIndexOutlivesItsOpening(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	for i := range 3 {
		s, err := e.Acquire(testStore)
		must(t, err)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		if got := keysOf(t, x); len(got) != i {
			t.Errorf("turn %d: %v", i, got)
		}
		setKeys(t, x, fmt.Sprint(i))
		e.Indexes().Release(x)
		e.Release(s)
		if i == 0 {
			must(t, e.cache.closeIdle(0))
			continue
		}
		stop()
		e, stop = startEngine(t, Options{FS: fs})
	}
}

// TestLargeBatchesAreLetGoOf: what the engine holds of large batches does not stay.
func TestLargeBatchesAreLetGoOf(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about sizes, for which the race detector takes minutes")
	}
	const indexes, size = 6, 32 << 20
	e, _ := startEngine(t, Options{FS: vfs.Default, Dir: t.TempDir()})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	s, err := e.Acquire(testStore)
	must(t, err)
	defer e.Release(s)
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools hold
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	for i := range indexes {
		x, err := e.Indexes().Acquire(s, fmt.Sprint("x", i))
		must(t, err)
		defer e.Indexes().Release(x)
		b := x.NewBatch(false)
		b.Set([]byte("k"), make([]byte, size))
		must(t, b.Commit(t.Context()))
		b.Close()
		must(t, x.Settle())
	}
	if left := live() - before; left > size {
		t.Errorf("%d MB are left of %d batches of %d MB", left>>20, indexes, size>>20)
	}
}

// TestIndexAfterCrash: a crash leaves a prefix of the batches, what was flushed
// with it.
func TestIndexAfterCrash(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fs := storagetest.NewCrashFS()
		e, stop := startEngine(t, Options{FS: fs})
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(testStore)
		must(t, err)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		flushed := 0
		for i := range 1 + rnd.IntN(20) {
			setKeys(t, x, fmt.Sprintf("a%02d", i), fmt.Sprintf("b%02d", i))
			if rnd.IntN(4) == 0 {
				must(t, x.Flush())
				flushed = i + 1
			}
		}
		after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rnd})
		e.Indexes().Release(x)
		e.Release(s)
		stop()
		e, stop = startEngine(t, Options{FS: after})
		s, err = e.Acquire(testStore)
		must(t, err)
		x, err = e.Indexes().Acquire(s, "abc")
		must(t, err)
		got := keysOf(t, x)
		n := len(got) / 2
		for i := range n {
			if !strings.HasPrefix(got[i], fmt.Sprintf("a%02d=", i)) || !strings.HasPrefix(got[n+i], fmt.Sprintf("b%02d=", i)) {
				t.Fatalf("seed %d: no prefix of the batches: %v", seed, got)
			}
		}
		if len(got)%2 != 0 || n < flushed {
			t.Errorf("seed %d: %d batches were flushed, there is %v", seed, flushed, got)
		}
		e.Indexes().Release(x)
		e.Release(s)
		stop()
	}
}

// TestIndexGoesWithItsCopy: at once, when the copy is in use, and when the node
// was down.
func TestIndexGoesWithItsCopy(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	use := func(fn func(s *Store, x *Index)) {
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(testStore)
		must(t, err)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		if got := keysOf(t, x); len(got) > 0 {
			t.Errorf("the index of a new copy holds %v", got)
		}
		setKeys(t, x, "a")
		fn(s, x)
		e.Indexes().Release(x)
		e.Release(s)
	}
	gone := func(when string) {
		t.Helper()
		if names, err := e.Indexes().Signatures(testStore); len(names) > 0 || err != nil {
			t.Errorf("%s: %v, %v", when, names, err)
		}
	}
	use(func(*Store, *Index) {})
	must(t, e.Drop(testStore))
	gone("dropped while nobody used it")
	use(func(s *Store, x *Index) { must(t, e.Drop(testStore)) })
	gone("dropped while it was used")
	use(func(*Store, *Index) {})
	must(t, e.cache.closeIdle(0))
	must(t, e.Drop(testStore))
	gone("dropped while it was closed")
	use(func(*Store, *Index) {})
	stop()
	must(t, fs.RemoveAll(fs.PathJoin("data", testStore)))
	e, _ = startEngine(t, Options{FS: fs})
	gone("its copy went while the node was down")
}

// TestIndexOfAnotherCopy: a copy made anew under the name does not get the index
// of the one before.
func TestIndexOfAnotherCopy(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	setA(t, e)
	stop()
	files, err := fs.List(fs.PathJoin("data", testStore))
	must(t, err)
	for _, f := range files {
		if strings.HasPrefix(f, identity.Prefix) {
			other := identity.New(testStore, 1, false)
			must(t, fs.Rename(fs.PathJoin("data", testStore, f), fs.PathJoin("data", testStore, other.FileName())))
		}
	}
	e, _ = startEngine(t, Options{FS: fs})
	if !isEmpty(t, e) {
		t.Error("it holds something")
	}
}

// TestIndexOfAnOlderVersion: what an older program has put into an index is not
// read, and that is told once, as no damage.
func TestIndexOfAnOlderVersion(t *testing.T) {
	fs := vfs.NewMem()
	core, lines := observer.New(zapcore.InfoLevel)
	o := Options{FS: fs, Logger: zap.New(core)}
	e, stop := startEngine(t, o)
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	setA(t, e)
	dir := e.env.path(indexDir(testStore), "abc")
	stop()
	files, err := fs.List(dir)
	must(t, err)
	for _, f := range files {
		if uuid, ok := strings.CutPrefix(f, indexPrefix); ok {
			must(t, fs.Rename(fs.PathJoin(dir, f), fs.PathJoin(dir, "INDEX-0-"+uuid)))
		}
	}
	e, stop = startEngine(t, o)
	if !isEmpty(t, e) {
		t.Error("it holds something")
	}
	setA(t, e)
	stop()
	e, _ = startEngine(t, o)
	if isEmpty(t, e) {
		t.Error("it was set aside again")
	}
	told := lines.FilterMessageSnippet("index is of another version").All()
	if len(told) != 1 || told[0].Level != zapcore.InfoLevel || lines.FilterLevelExact(zapcore.WarnLevel).Len() > 0 {
		t.Errorf("told %d times, in all: %v", len(told), lines.All())
	}
}

// withIndex uses the index "abc" of the store.
func withIndex(t *testing.T, e *Engine, use func(x *Index)) {
	t.Helper()
	s, err := e.Acquire(testStore)
	must(t, err)
	defer e.Release(s)
	x, err := e.Indexes().Acquire(s, "abc")
	must(t, err)
	defer e.Indexes().Release(x)
	use(x)
}

func setA(t *testing.T, e *Engine) {
	t.Helper()
	withIndex(t, e, func(x *Index) { setKeys(t, x, "a") })
}

// isEmpty reports whether the index holds nothing.
func isEmpty(t *testing.T, e *Engine) (empty bool) {
	t.Helper()
	withIndex(t, e, func(x *Index) { empty = len(keysOf(t, x)) == 0 })
	return empty
}

// TestDamagedIndexIsSetAside: whether opening finds out or a reader.
func TestDamagedIndexIsSetAside(t *testing.T) {
	fs := vfs.NewMem()
	e, stop := startEngine(t, Options{FS: fs})
	must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
	dir := e.env.path(indexDir(testStore), "abc")
	for _, damage := range []string{"MANIFEST-", instance.ManifestMarker, indexPrefix} {
		setA(t, e)
		stop()
		files, err := fs.List(dir)
		must(t, err)
		for _, f := range files {
			if strings.HasPrefix(f, damage) {
				must(t, fs.Remove(fs.PathJoin(dir, f)))
			}
		}
		e, stop = startEngine(t, Options{FS: fs})
		if !isEmpty(t, e) {
			t.Errorf("without %s it holds something", damage)
		}
	}
	s := acquire(t, e, testStore)
	x, err := e.Indexes().Acquire(s, "abc")
	must(t, err)
	setKeys(t, x, "a")
	must(t, x.Discard())
	must(t, x.Discard())
	if _, err := x.Snapshot(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a discarded index: %v", err)
	}
	if got := keysOf(t, openIndex(t, s, "abc")); len(got) > 0 {
		t.Errorf("the one in its place: %v", got)
	}
	e.Indexes().Release(x)
	if !isEmpty(t, e) {
		t.Error("it came back")
	}
}

func TestDropIndex(t *testing.T) {
	s := newStore(t, CreateOptions{CopyID: 1, Small: true})
	e := s.engine
	if err := e.Indexes().Drop(testStore, "abc"); !fault.Is(err, fault.NoCopy) {
		t.Errorf("none is there: %v", err)
	}
	setA(t, e)
	must(t, e.Indexes().Drop(testStore, "abc"))
	x, err := e.Indexes().Acquire(s, "abc")
	must(t, err)
	setKeys(t, x, "a")
	must(t, e.Indexes().Drop(testStore, "abc"))
	e.Indexes().Release(x)
	if names, err := e.Indexes().Signatures(testStore); len(names) > 0 || err != nil {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := e.Indexes().Acquire(s, "../abc"); err == nil {
		t.Error("a name that leads elsewhere")
	}
}

// TestIndexOnFullDisk: it stops, its copy does not, and it goes on once there is
// space, from what it had before.
func TestIndexOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		fs := failing(vfs.NewMem(), &on, syscall.ENOSPC, func(op errorfs.Op) bool {
			return strings.Contains(op.Path, indexesDir) && strings.HasSuffix(op.Path, ".sst")
		})
		e, stop := startEngine(t, Options{FS: fs})
		defer stop()
		must(t, e.Create(testStore, CreateOptions{CopyID: 1, Small: true}))
		s, err := e.Acquire(testStore)
		must(t, err)
		defer e.Release(s)
		x, err := e.Indexes().Acquire(s, "abc")
		must(t, err)
		setKeys(t, x, "a")
		must(t, x.Flush())
		setKeys(t, x, "b")
		on.Store(true)
		if err := x.Flush(); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("flush: %v", err)
		}
		if _, err := x.Snapshot(); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("snapshot: %v", err)
		}
		writeOne(t, s)
		e.Indexes().Release(x)
		on.Store(false)
		x, err = e.Indexes().Acquire(s, "abc") // for reading
		must(t, err)
		if got := keysOf(t, x); !slices.Equal(got, []string{"a=a!"}) {
			t.Errorf("for reading the index holds %v", got)
		}
		b := x.NewBatch(false)
		b.Set([]byte("c"), nil)
		if err := b.Commit(t.Context()); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("for reading: %v", err)
		}
		b.Close()
		e.Indexes().Release(x)
		<-time.After(diskspace.Look)
		x, err = e.Indexes().Acquire(s, "abc")
		must(t, err)
		if got := keysOf(t, x); !slices.Equal(got, []string{"a=a!"}) {
			t.Errorf("the index holds %v", got)
		}
		setKeys(t, x, "b")
		e.Indexes().Release(x)
	})
}
