package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"divan/storage"
	"divan/storage/format"
	"divan/storage/storagetest"
)

// keysOf returns all that a copy has in its store, which is closed. Blocks at the start
// without documents are left out, and the number of the last batch.
func keysOf(t *testing.T, fs vfs.FS, name string) map[string]string {
	t.Helper()
	db, err := pebble.Open("/data/"+name, &pebble.Options{FS: fs, Merger: format.SumsMerger(), ReadOnly: true, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for ok := it.First(); ok; ok = it.Next() {
		key, value := string(it.Key()), string(it.Value())
		switch key {
		case "m\x00counters":
			_, c, err := format.DecodeCounters(it.Value())
			if err != nil {
				t.Fatal(err)
			}
			value = fmt.Sprintf("%+v", c)
		case "g\x00d\x01", "g\x00d\x02":
			if s, err := format.DecodeSums(it.Value()); err != nil || s.IsZero() {
				continue
			}
		}
		out[key] = value
	}
	if err := errors.Join(it.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// stride is the step of a loop over operations that fail: 1, and n in a short run.
func stride(n int64) int64 {
	if testing.Short() {
		return n
	}
	return 1
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}

// An empty target that is filled by tables has the same keys and values as one that
// nearly all came to in the order of sequences.
func TestFillEqualsSteps(t *testing.T) {
	for i := uint64(0); i < 12; i += uint64(stride(5)) {
		partitioned := i%2 == 1
		fs := newFS()
		n := open(t, fs, Options{})
		n.create(CreateOptions{Partitioned: partitioned})
		ctx, rng := context.Background(), rand.New(rand.NewPCG(i, 7))
		both := []CloneOptions{halves[i/2%2], halves[i/2%2]}
		both[1].Target += "1"
		for k := range both {
			both[k].Partitioned, both[k].stepBytes = partitioned, 1+rng.IntN(20000)
			if err := n.Copies.Create(ctx, both[k].Target, CreateOptions{Partitioned: partitioned}); err != nil {
				t.Fatal(err)
			}
		}
		n.edit("first", "", "{}")
		if _, err := n.Clones.Range(ctx, both[0]); err != nil {
			t.Fatal(err)
		}
		n.edit("_design/d", "", `{"views":{}}`)
		n.edits(true, make1000(int(i%4))...)
		for range 4 {
			if err := n.scatter(ctx, rng, 40); err != nil {
				t.Fatal(err)
			}
			if rng.IntN(3) == 0 {
				if err := n.compactNow(Limits{PurgedInfos: 1 + rng.IntN(5)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for k := range both {
			if _, err := n.Clones.Range(ctx, both[k]); err != nil {
				t.Fatal(err)
			}
			n.acquire(t, both[k].Target, func(s *storage.Store) {
				if err := s.Check(ctx, func(p string) { t.Errorf("check of %s: %s", both[k].Target, p) }); err != nil {
					t.Fatal(err)
				}
			})
		}
		n.stop()
		steps, tables := keysOf(t, fs, both[0].Target), keysOf(t, fs, both[1].Target)
		for _, key := range slices.Sorted(maps.Keys(steps)) {
			if got, ok := tables[key]; !ok || got != steps[key] {
				t.Fatalf("%d: %q is %.80q (%v), want %.80q", i, key, got, ok, steps[key])
			}
			delete(tables, key)
		}
		if len(tables) > 0 || len(steps) < 50 {
			t.Fatalf("%d: %d keys; more are %q", i, len(steps), slices.Sorted(maps.Keys(tables)))
		}
	}
}

// interrupting is a file system that does something at the n-th operation that changes
// what lies in the directory of the first half.
type interrupting struct {
	storagetest.CrashFS
	count atomic.Int64
	at    func(n int64) error
}

func (i *interrupting) fs() vfs.FS {
	return errorfs.Wrap(i.CrashFS, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRemove, errorfs.OpRename, errorfs.OpFileWrite, errorfs.OpFileSync,
			errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpReuseForWrite:
		default:
			return nil
		}
		if !strings.Contains(op.Path, halves[0].Target) {
			return nil
		}
		return i.at(i.count.Add(1))
	}))
}

// fillSource makes a node with a source and two empty halves, closed, and returns its disk.
func fillSource(t *testing.T) storagetest.CrashFS {
	t.Helper()
	disk := storagetest.NewCrashFS()
	n := open(t, disk, Options{})
	n.create(CreateOptions{})
	n.createHalves(CreateOptions{})
	n.edit("_design/d", "", `{"views":{}}`)
	if err := n.scatter(context.Background(), rand.New(rand.NewPCG(5, 6)), 30); err != nil {
		t.Fatal(err)
	}
	edits := make([]Edit, 1500) // so that not all is in one table
	for i := range edits {
		edits[i] = Edit{ID: fmt.Sprint("many", i), Body: body(300)}
	}
	n.edits(true, edits...)
	n.stop()
	return disk
}

// afterFill looks at what an interrupted fill has left and goes on.
func afterFill(t *testing.T, disk storagetest.CrashFS, ended bool) {
	t.Helper()
	n := open(t, disk, Options{})
	defer n.stop()
	n.acquire(t, halves[0].Target, func(s *storage.Store) {
		if err := s.Check(context.Background(), func(p string) { t.Errorf("check: %s", p) }); err != nil {
			t.Fatal(err)
		}
		switch seq := s.Counters().Seq; {
		case seq == n.info().Seq:
			n.compareOrigin(t, s)
		case seq != 0 || ended || len(s.Origins()) > 0 || s.Counters() != storage.Counters{}:
			t.Fatalf("the fill has ended: %v; %+v, origins %v", ended, s.Counters(), s.Origins())
		}
	})
	files, err := disk.List("/data/" + halves[0].Target)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".upload") {
			t.Fatalf("left behind: %v", files)
		}
	}
	n.cloneHalves(t, 0)
	n.compareHalves(t)
	if err := n.scatter(context.Background(), rand.New(rand.NewPCG(8, 9)), 5); err != nil {
		t.Fatal(err)
	}
	n.cloneHalves(t, 0)
	n.compareHalves(t)
}

// The power goes at each operation of a fill in turn: then the target is empty or filled,
// and the next clone goes on.
func TestFillPowerCuts(t *testing.T) {
	base := fillSource(t)
	rng, every := rand.New(rand.NewPCG(1, 1)), stride(8)
	for n := 1 + rand.Int64N(every); ; n += every {
		disk := &interrupting{CrashFS: base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})}
		var after *storagetest.CrashFS
		disk.at = func(k int64) error {
			if k == n {
				left := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rng})
				after = &left
			}
			return nil
		}
		node := open(t, disk.fs(), Options{})
		if _, err := node.Clones.Range(context.Background(), halves[0]); err != nil {
			t.Fatal(err)
		}
		ended := disk.count.Load() < n
		node.stop()
		if after == nil {
			t.Logf("%d operations", n-1)
			break
		}
		if ended {
			continue // while it was closed
		}
		afterFill(t, *after, false)
	}
}

// Each operation of a fill fails in turn: the clone says so, unless it does not matter, and
// the next one goes on.
func TestFillFails(t *testing.T) {
	base := fillSource(t)
	rng, every := rand.New(rand.NewPCG(2, 2)), stride(8)
	failed := 0
	for n := 1 + rand.Int64N(every); ; n += every {
		disk := &interrupting{CrashFS: base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})}
		var off atomic.Bool
		disk.at = func(k int64) error {
			if k == n && !off.Load() {
				return syscall.EIO
			}
			return nil
		}
		node := open(t, disk.fs(), Options{})
		_, err := node.Clones.Range(context.Background(), halves[0])
		off.Store(true)
		reached := disk.count.Load() >= n
		left := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(3) * 50, RNG: rng})
		_ = node.Close()        // a store that has failed says so
		_ = node.engine.Close() // again
		if !reached {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		if err != nil {
			failed++
		}
		afterFill(t, left, err == nil)
	}
	if failed*int(every) < 10 {
		t.Errorf("only %d operations failed", failed)
	}
}

// A clone asks before it goes on; a refusal ends it, and leaves nothing of it.
func TestFillAsks(t *testing.T) {
	fs := newFS()
	n := open(t, fs, Options{})
	n.create(CreateOptions{})
	n.createHalves(CreateOptions{})
	defer n.stop()
	for i := range 8 {
		e := Edit{ID: fmt.Sprint("doc", i), Body: body(10), Atts: []EditAttachment{{Data: bytes.Repeat([]byte{byte(i)}, 600<<10)}}}
		a := &e.Atts[0]
		a.Name, a.Length, a.StoredLength, a.Digest = "a", 600<<10, 600<<10, digest(string(a.Data))
		n.must(n.edits(true, e)[0])
	}
	o := halves[0]
	asked, refused := 0, errors.New("not now")
	o.Pace = func(_ context.Context, bytes int) error {
		if asked += bytes; asked >= 1<<20 {
			return refused
		}
		return nil
	}
	if _, err := n.Clones.Range(context.Background(), o); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	files, err := fs.List("/data/" + o.Target)
	if err != nil || slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".upload") }) {
		t.Fatal(files, err)
	}
	n.acquire(t, o.Target, func(s *storage.Store) {
		if c := s.Counters(); c != (storage.Counters{}) {
			t.Fatalf("%+v", c)
		}
	})
	n.cloneHalves(t, 0)
	n.compareHalves(t)
}
