package paths_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"
	"pgregory.net/rapid"

	"divan/storage"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// at is the path of a name below the data directory of these tests.
func at(name string) string { return path.Join("data", name) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startEngine runs an engine until stop is called, or the test ends.
func startEngine(t *testing.T, fs vfs.FS) (e *storage.Engine, stop func()) {
	t.Helper()
	e, err := storage.NewEngine(storage.Options{FS: fs, Dir: "data", Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = e.Run(ctx) }) // nil whenever ctx ends
	stop = sync.OnceFunc(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		cancel()
		wg.Wait()
	})
	t.Cleanup(stop)
	return e, stop
}

// nameParts are parts of names of databases: ones that begin like another, ones
// that look like a signature, a suffix, a range, or something of the engine.
var nameParts = []string{
	"team", "pond", "x_1763600000", "0123456789abcdef0123456789abcdef", "~", "00000000-ffffffff", "shards", "indexes", "_users",
}

// pathWorld is a model of a data directory: copies, and the indexes that each has.
type pathWorld struct {
	e      *storage.Engine
	stop   func()
	fs     *vfs.MemFS
	copies map[string][]string
	left   map[string]bool // directories above a copy that was removed by hand: not the engine's business
}

// drawCopy draws the name of a copy of a database of one to five parts.
func drawCopy(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom(nameParts), 1, 5).Draw(t, "parts")
	r := rapid.SampledFrom([]string{"00000000-7fffffff", "80000000-ffffffff"}).Draw(t, "range")
	return "shards/" + r + "/" + strings.Join(parts, "/") + rapid.SampledFrom([]string{".1763600000", ".1763600001"}).Draw(t, "suffix")
}

// TestPathsOfAnyDepth: copies of databases with one to five parts in their names,
// with indexes, are made, dropped, set aside and removed by hand; the node starts
// again. Each copy keeps its indexes until it goes, and then nothing is left of
// it, also not the directories above it, and everything of its neighbours.
func TestPathsOfAnyDepth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &pathWorld{fs: vfs.NewMem(), copies: map[string][]string{}, left: map[string]bool{}}
		w.e, w.stop = startEngine(t, w.fs)
		defer func() { w.stop() }()
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				name := drawCopy(rt)
				_, there := w.copies[name]
				if err := w.e.Create(name, storage.CreateOptions{}); there != fault.Is(err, fault.Exists) || !there && err != nil {
					rt.Fatalf("create %s: %v", name, err)
				}
				w.index(rt, name, strconv.Itoa(len(w.copies[name])))
			},
			"drop":      func(rt *rapid.T) { w.gone(rt, w.e.Drop) },
			"set aside": func(rt *rapid.T) { w.gone(rt, w.e.Orphan) },
			"remove by hand": func(rt *rapid.T) {
				w.gone(rt, func(name string) error {
					w.stop()
					err := w.fs.RemoveAll(at(name))
					for dir := path.Dir(name); dir != "shards"; dir = path.Dir(dir) {
						w.left[dir] = true
					}
					w.start(t)
					return err
				})
			},
			"restart": func(*rapid.T) { w.stop(); w.start(t) },
			"":        w.check,
		})
	})
}

func (w *pathWorld) start(t *testing.T) {
	t.Helper()
	w.e, w.stop = startEngine(t, w.fs)
}

// index gives a copy an index with a key.
func (w *pathWorld) index(rt *rapid.T, name, signature string) {
	s, err := w.e.Acquire(name)
	if err != nil {
		rt.Fatal(err)
	}
	defer w.e.Release(s)
	x, err := w.e.Indexes().Acquire(s, signature)
	if err != nil {
		rt.Fatal(err)
	}
	defer w.e.Indexes().Release(x)
	b := x.NewBatch(false)
	defer b.Close()
	b.Set([]byte(name), nil)
	if err := errors.Join(b.Commit(context.Background()), x.Flush()); err != nil {
		rt.Fatal(err)
	}
	w.copies[name] = append(w.copies[name], signature)
}

// gone makes a copy go.
func (w *pathWorld) gone(rt *rapid.T, how func(name string) error) {
	if len(w.copies) == 0 {
		rt.Skip("there is none")
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.copies))).Draw(rt, "copy")
	if err := how(name); err != nil {
		rt.Fatalf("%s: %v", name, err)
	}
	delete(w.copies, name)
}

// check compares the directory with the model.
func (w *pathWorld) check(rt *rapid.T) {
	names, err := w.e.Catalog().Names()
	if want := slices.Sorted(maps.Keys(w.copies)); err != nil || !slices.Equal(names, want) {
		rt.Fatalf("copies %q, %v, want %q", names, err, want)
	}
	for name, signatures := range w.copies {
		if got, err := w.e.Indexes().Signatures(name); err != nil || !slices.Equal(got, signatures) {
			rt.Fatalf("indexes of %s: %q, %v, want %q", name, got, err, signatures)
		}
		for _, signature := range signatures {
			w.wantKey(rt, name, signature)
		}
	}
	for _, root := range []string{"shards", "indexes"} {
		want := map[string]bool{}
		for name := range w.copies {
			rest := strings.TrimPrefix(name, "shards")
			for dir := root + rest; dir != root; dir = path.Dir(dir) {
				want[dir] = true
			}
		}
		w.wantDirs(rt, root, want)
	}
}

// wantKey looks whether an index holds what was written to it.
func (w *pathWorld) wantKey(rt *rapid.T, name, signature string) {
	s, err := w.e.Acquire(name)
	if err != nil {
		rt.Fatal(err)
	}
	defer w.e.Release(s)
	x, err := w.e.Indexes().Acquire(s, signature)
	if err != nil {
		rt.Fatal(err)
	}
	defer w.e.Indexes().Release(x)
	if _, ok, err := x.Get(nil, []byte(name)); !ok || err != nil {
		rt.Fatalf("index %s of %s has lost its key, %v", signature, name, err)
	}
}

// wantDirs looks for directories that lead to no copy. Those of the ranges stay.
func (w *pathWorld) wantDirs(rt *rapid.T, dir string, want map[string]bool) {
	children, err := w.fs.List(at(dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		rt.Fatal(err)
	}
	for _, child := range children {
		name := dir + "/" + child
		if name == storage.OrphanedDir {
			continue
		}
		if strings.Count(name, "/") > 1 && !want[name] && !w.left[name] {
			rt.Fatalf("%s is left", name)
		}
		if _, copyOf := w.copies["shards"+name[strings.Index(name, "/"):]]; !copyOf {
			w.wantDirs(rt, name, want)
		}
	}
}

// TestParentsInUse: between the moment when the directories above a copy are
// there and the one when it is in them, the last of its neighbours goes. The
// copy is there after a loss of power.
func TestParentsInUse(t *testing.T) {
	const first, second = "shards/00000000-ffffffff/a/b/c.1", "shards/00000000-ffffffff/a/b/d.1"
	disk := storagetest.NewCrashFS()
	var e *storage.Engine
	var on atomic.Bool
	dropped := make(chan error, 1)
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind != errorfs.OpMkdirAll || !strings.HasSuffix(op.Path, second) || !on.CompareAndSwap(true, false) {
			return nil
		}
		done := make(chan struct{})
		go func() {
			dropped <- e.Drop(first)
			close(done)
		}()
		for range 100_000 { // it ends, or waits for this goroutine
			select {
			case <-done:
				return nil
			default:
				runtime.Gosched()
			}
		}
		return nil
	}))
	e, _ = startEngine(t, fs)
	must(t, e.Create(first, storage.CreateOptions{}))
	on.Store(true)
	must(t, e.Create(second, storage.CreateOptions{}))
	if on.Load() {
		t.Fatal("the drop was not tried")
	}
	must(t, <-dropped)
	crashed, _ := startEngine(t, disk.CrashClone(vfs.CrashCloneCfg{}))
	if !crashed.Catalog().Has(second) {
		t.Error("it is gone")
	}
}
