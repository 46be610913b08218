package view

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"divan/shard"
	"divan/shard/index"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

// simple is a view that lists documents.
const simple = `{"views":{"n":{"map":"function (doc) { emit(doc.n, null); }","reduce":"_count"}}}`

// numbered makes documents with numbers.
func numbered(from, to int) (out []shard.Edit) {
	for i := from; i < to; i++ {
		out = append(out, edit(fmt.Sprintf("d%05d", i), fmt.Sprintf(`{"n":%d}`, i)))
	}
	return out
}

// TestCrashDuringBuild: wherever power fails while an index is filled and brought
// up to date, it goes on to the right rows and blocks.
func TestCrashDuringBuild(t *testing.T) {
	d := define(t, simple)
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		fs := storagetest.NewCrashFS()
		n := startOn(t, fs)
		n.views.long, n.views.dense = 100, 1
		n.create(false)
		n.put(1, numbered(0, 2500)...)
		if rnd.IntN(2) == 0 {
			n.query(request(d, "n"))
			n.flushIndex(d)
			n.put(2, numbered(500, 500+rnd.IntN(1500))...)
		}
		var building sync.WaitGroup
		building.Go(func() { n.query(request(d, "n")) })
		var after storagetest.CrashFS
		for range 1 + rnd.IntN(40) {
			after = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
		}
		building.Wait()
		n.stop()
		n = startOn(t, after)
		n.views.long, n.views.dense = 100, 1
		a := n.query(request(d, "n"))
		if len(a.rows) != 2500 || a.Total != 2500 || a.rows[0] != "d00000 0 null" || a.rows[2499] != "d02499 2499 null" {
			t.Errorf("seed %d: %d rows of %d", seed, len(a.rows), a.Total)
		}
		n.checkBlocks(t, d)
		n.stop()
	}
}

// flushIndex makes the index durable as it is.
func (n *node) flushIndex(d *Definition) {
	n.tb.Helper()
	use, _, err := n.views.acquire(context.Background(), copyName, n.views.spec(copyName, d))
	must(n.tb, err)
	defer use.Release()
	must(n.tb, use.Index.Flush())
}

// TestUpdateIsShared: many queries wait for one build, and a query that is given
// up does not end it.
func TestUpdateIsShared(t *testing.T) {
	n := start(t)
	n.put(1, numbered(0, 3000)...)
	d := define(t, simple)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := n.views.Query(gone, request(d, "n")); !errors.Is(err, context.Canceled) {
		t.Errorf("a query that was given up: %v", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if a := n.query(oneRow(d, "n")); a.Total != 3000 {
				t.Errorf("%d rows", a.Total)
			}
		})
	}
	wg.Wait()
}

// TestReadYourWrites: a query that comes after a write shows it; one that does
// not want to wait may not.
func TestReadYourWrites(t *testing.T) {
	n := start(t)
	d := define(t, simple)
	never := request(d, "n")
	never.Update = UpdateNever
	for i := range 50 {
		n.put(1, numbered(i, i+1)...)
		if i == 0 {
			if a := n.query(never); len(a.rows) != 0 {
				t.Errorf("rows of an index that nobody updated: %v", a.rows)
			}
		}
		if a := n.query(request(d, "n")); len(a.rows) != i+1 || a.Seq != uint64(i+1) {
			t.Fatalf("after %d writes: %d rows at sequence %d", i+1, len(a.rows), a.Seq)
		}
	}
	n.put(1, numbered(50, 51)...)
	lazy := request(d, "n")
	lazy.Update = UpdateAfter
	if a := n.query(lazy); len(a.rows) != 50 {
		t.Errorf("a query that is answered at once: %d rows", len(a.rows))
	}
	n.waitFor(d, func(i Info) bool { return i.Seq == 51 })
}

// waitFor waits until the index stands in some way.
func (n *node) waitFor(d *Definition, reached func(i Info) bool) {
	n.tb.Helper()
	for {
		i, err := n.views.Info(context.Background(), copyName, d.Text)
		must(n.tb, err)
		if reached(i) {
			return
		}
		select {
		case <-time.After(time.Millisecond):
		case <-n.tb.Context().Done():
			n.tb.Fatal("the index does not get there")
		}
	}
}

func TestInfoWarmAndCleanup(t *testing.T) {
	n := start(t)
	ctx := context.Background()
	n.put(1, numbered(0, 100)...)
	d, other := define(t, simple), define(t, modelViews)
	i, err := n.views.Info(ctx, copyName, d.Text)
	must(t, err)
	if i.Seq != 0 || i.Pending != 100 || i.Updating || i.Collation == "" {
		t.Errorf("before it is built: %+v", i)
	}
	n.indexes.Warm(t.Context(), copyName, d.Wanted())
	n.indexes.Warm(t.Context(), copyName, other.Wanted())
	n.waitFor(d, func(i Info) bool { return i.Pending == 0 && !i.Updating })
	n.waitFor(other, func(i Info) bool { return i.Pending == 0 && !i.Updating })
	if i, err = n.views.Info(ctx, copyName, d.Text); i.Seq != 100 || i.External == 0 || err != nil {
		t.Errorf("once it is built: %+v, %v", i, err)
	}
	must(t, n.views.Compact(ctx, copyName, d.Text))
	n.waitFor(d, func(i Info) bool { return !i.Compacting && i.File > 0 })
	if tasks := n.indexes.Tasks(); len(tasks) > 0 {
		t.Errorf("tasks of indexes that are up to date: %+v", tasks)
	}
	must(t, n.indexes.Cleanup(ctx, copyName, index.View, []string{d.Signature}))
	left, err := n.engine.Indexes().Signatures(copyName)
	must(t, err)
	if !slices.Equal(left, []string{d.Signature}) || len(n.checkpoints()) != 1 {
		t.Errorf("after the clean-up: %v, %v", left, n.checkpoints())
	}
	if a := n.query(request(other, "sum")); len(a.rows) != 0 {
		t.Errorf("%v", a)
	}
}

// checkpoints lists what holds the purge log.
func (n *node) checkpoints() (out []string) {
	n.tb.Helper()
	s, err := n.local.LocalDocs.List(context.Background(), shard.LocalDocsRequest{Copy: copyName, System: true})
	must(n.tb, err)
	defer s.Close()
	var b shard.LocalBatch
	_, err = s.Next(&b)
	must(n.tb, err)
	for _, r := range b.Rows {
		out = append(out, fmt.Sprintf("%s %s", r.ID, r.Body))
	}
	return out
}

// TestPurgeLogWaits: an index holds the log until it has taken the purges, and is
// built anew when the log does not reach back to it.
func TestPurgeLogWaits(t *testing.T) {
	n := start(t)
	d := define(t, simple)
	n.put(1, numbered(0, 30)...)
	n.query(request(d, "n"))
	purge := func(from, to int) {
		t.Helper()
		var items []shard.PurgeItem
		for i := from; i < to; i++ {
			items = append(items, shard.PurgeItem{ID: fmt.Sprintf("d%05d", i), Revs: []doc.Rev{{Pos: 1, ID: fmt.Sprintf("%032x", 1)}}})
		}
		_, err := n.local.Purge(context.Background(), copyName, items)
		must(t, err)
	}
	purge(0, 5)
	compact := func() uint64 {
		t.Helper()
		must(t, n.local.Compactions.Start(context.Background(), copyName, shard.Limits{PurgedInfos: 1}, "db"))
		for len(n.local.Compactions.Running()) > 0 {
			<-time.After(time.Millisecond)
		}
		log, err := n.local.Purges(context.Background(), copyName, 0)
		must(t, err)
		return uint64(len(log))
	}
	if left := compact(); left != 5 {
		t.Errorf("%d purges are left for an index that has taken none of 5", left)
	}
	if a := n.query(request(d, "n")); len(a.rows) != 25 || a.rows[0] != "d00005 5 null" {
		t.Errorf("%v", a.rows)
	}
	if left := compact(); left != 1 {
		t.Errorf("%d purges are left for an index that has taken all of 5, %v", left, n.checkpoints())
	}
	purge(5, 10)
	_, err := n.local.LocalDocs.Delete(context.Background(), copyName, shard.PurgePrefix+"index-"+d.Signature, doc.Rev{})
	must(t, err)
	compact()
	if a := n.query(request(d, "n")); len(a.rows) != 20 || a.rows[0] != "d00010 10 null" {
		t.Errorf("behind the purge log: %v", a.rows)
	}
	n.checkBlocks(t, d)
}

// TestDamagedIndexIsBuiltAnew: after any damage to the files the next query, or
// the one after, is answered.
func TestDamagedIndexIsBuiltAnew(t *testing.T) {
	fs := vfs.NewMem()
	n := startOn(t, fs)
	n.create(false)
	n.put(1, numbered(0, 3000)...)
	d := define(t, simple)
	n.query(request(d, "n"))
	n.flushIndex(d)
	n.stop()
	dir := "/data/indexes/" + strings.TrimPrefix(copyName, "shards/") + "/" + d.Signature
	files, err := fs.List(dir)
	must(t, err)
	for _, f := range files {
		if strings.HasSuffix(f, ".sst") {
			overwrite(t, fs, fs.PathJoin(dir, f))
		}
	}
	n = startOn(t, fs)
	var a answer
	for range 3 {
		if a, err = n.tryQuery(request(d, "n")); err == nil {
			break
		}
		if !fault.Is(err, fault.Corruption) {
			t.Errorf("a damaged index: %v", err)
		}
	}
	if err != nil || len(a.rows) != 3000 {
		t.Errorf("%d rows, %v", len(a.rows), err)
	}
}

// overwrite damages the blocks of a file.
func overwrite(t *testing.T, fs vfs.FS, path string) {
	t.Helper()
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	junk := make([]byte, info.Size()/2)
	_, err = f.WriteAt(junk, 0)
	must(t, err)
	must(t, f.Close())
}

// TestCopyDroppedDuringBuild: the build ends, and nothing of the index is left.
func TestCopyDroppedDuringBuild(t *testing.T) {
	n := start(t)
	n.put(1, numbered(0, 5000)...)
	d := define(t, simple)
	n.indexes.Warm(t.Context(), copyName, d.Wanted())
	must(t, n.local.Copies.Drop(context.Background(), copyName))
	if _, err := n.tryQuery(request(d, "n")); !fault.Is(err, fault.NoCopy) {
		t.Errorf("a view of a copy that is gone: %v", err)
	}
	must(t, n.indexes.Close())
	if left, err := n.engine.Indexes().Signatures(copyName); len(left) > 0 || err != nil {
		t.Errorf("%v, %v", left, err)
	}
}

// TestIndexOnFullDisk: queries fail while there is no space for the index, writes
// of documents do not, and afterwards all is well.
func TestIndexOnFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full.Load() && strings.Contains(op.Path, "indexes/") && op.Kind == errorfs.OpCreate {
				return syscall.ENOSPC
			}
			return nil
		}))
		n := startOn(t, fs)
		defer n.stop()
		n.create(false)
		n.put(1, numbered(0, 2000)...)
		d := define(t, simple)
		full.Store(true)
		if _, err := n.tryQuery(request(d, "n")); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("no space for the index: %v", err)
		}
		time.Sleep(time.Second) // then the disk is looked at again
		n.put(1, numbered(2000, 2001)...)
		full.Store(false)
		time.Sleep(3 * time.Second)
		if a := n.query(request(d, "n")); len(a.rows) != 2001 {
			t.Errorf("%d rows", len(a.rows))
		}
	})
}

func TestUnknownView(t *testing.T) {
	n := start(t)
	d := define(t, `{"views":{"a":{"map":"function (doc) { emit(1); }"}}}`)
	if _, err := n.tryQuery(request(d, "b")); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown view: %v", err)
	}
	req := request(d, "a")
	req.Reduce = true
	if _, err := n.tryQuery(req); !fault.Is(err, fault.QueryParse) {
		t.Errorf("a view without a reduce function: %v", err)
	}
	req = request(d, "a")
	req.Signature = "another"
	if _, err := n.tryQuery(req); !fault.Is(err, fault.BadRequest) {
		t.Errorf("another signature: %v", err)
	}
	if _, err := n.tryQuery(request(define(t, `{"views":{"a":{"map":"function ("}}}`), "a")); !fault.Is(err, fault.CompilationError) {
		t.Errorf("a function that does not compile: %v", err)
	}
	if _, err := n.tryQuery(request(define(t, `{"language":"cobol","views":{"a":{"map":"x"}}}`), "a")); err == nil {
		t.Error("an unknown language")
	}
}
