package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"divan/storage/doc"
	"divan/storage/fault"
)

// fullDisk is a file system on which the logs find no space while full is one of
// the ways below.
type fullDisk struct {
	full  atomic.Int32
	delay atomic.Int64 // of what fails
}

const (
	space     int32 = iota
	syncFails       // what was written is there when the log is read again
	writeFails
	nothingFits // files may be made, but get no content
)

func (d *fullDisk) fs(under vfs.FS) vfs.FS {
	return errorfs.Wrap(under, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if d.full.Load() == nothingFits && op.Kind == errorfs.OpFileWrite {
			return syscall.ENOSPC
		}
		if !strings.HasSuffix(op.Path, ".log") {
			return nil
		}
		way := space
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			way = syncFails
		case errorfs.OpFileWrite:
			way = writeFails
		default:
		}
		if way == space || d.full.Load() != way {
			return nil
		}
		if delay := d.delay.Load(); delay > 0 {
			pass(time.Duration(delay))
		}
		return syscall.ENOSPC
	}))
}

// eachWay runs a test in a bubble for either way in which a disk is full.
func eachWay(t *testing.T, run func(t *testing.T, way int32)) {
	t.Helper()
	for name, way := range map[string]int32{"sync": syncFails, "write": writeFails, "nothing": nothingFits} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, way) })
		})
	}
}

// put tries an edit of a new document, which must be refused only by the disk.
func (n *node) put(id string) (rev string, err error) {
	n.t.Helper()
	res, err := n.Decide(context.Background(), DecideRequest{
		Copy: copyName, NewEdits: true, Edits: []Edit{{ID: id, Body: []byte("{}")}},
	})
	if err != nil {
		if !fault.Is(err, fault.InsufficientStorage) && !fault.Is(err, fault.Unavailable) {
			n.t.Fatalf("%s: %v", id, err)
		}
		return "", err
	}
	return n.must(res[0]), nil
}

// A copy on a disk that is full for a while takes writes again when there is
// space, with all that was acknowledged, and the log tells of it once.
func TestWritesGoOnWhenThereIsSpace(t *testing.T) {
	eachWay(t, func(t *testing.T, way int32) {
		t.Helper()
		core, lines := observer.New(zap.InfoLevel)
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{Logger: zap.New(core)})
		defer n.stop()
		n.create(CreateOptions{})
		for period := range 2 {
			kept := fmt.Sprint("kept", period)
			n.must(n.edit(kept, "", "{}"))
			was := n.info().Seq
			disk.full.Store(way)
			if _, err := n.put(fmt.Sprint("lost", period)); !fault.Is(err, fault.InsufficientStorage) {
				t.Fatalf("the disk is full: %v", err)
			}
			for i := range 10 {
				if _, err := n.put(fmt.Sprint("lost", period, i)); err == nil {
					t.Fatal("written on a full disk")
				}
				pass(time.Second)
			}
			disk.full.Store(space)
			pass(3 * time.Second)
			if _, err := n.put(fmt.Sprint("new", period)); err != nil {
				t.Fatalf("there is space: %v", err)
			}
			if d, err := n.get(OpenRequest{ID: fmt.Sprint("new", period), LocalSeq: true}); err != nil || d.LocalSeq <= was {
				t.Errorf("%+v %v after sequence %d", d, err, was)
			}
			if got := n.show(kept); !strings.HasPrefix(got, "1-") {
				t.Errorf("%s: %s", kept, got)
			}
			if a, b := lines.FilterMessage("shard copy stopped").Len(), lines.FilterMessage("shard copy takes writes again").Len(); a != period+1 || b != period+1 {
				t.Errorf("%d lines about the failure, %d about its end", a, b)
			}
			n.check()
		}
	})
}

// Who only reads does not have to wait for a write either, and the copy is at
// rest then.
func TestReadsGoOnWhenThereIsSpace(t *testing.T) {
	eachWay(t, func(t *testing.T, way int32) {
		t.Helper()
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{})
		defer n.stop()
		n.create(CreateOptions{})
		n.must(n.edit("a", "", "{}"))
		disk.full.Store(way)
		if res, err := n.Decide(t.Context(), DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{
			{ID: "lost", Body: []byte("{}")}, {ID: "_local/lost", Body: []byte("{}")},
		}}); err == nil {
			t.Fatal(res)
		}
		disk.full.Store(space)
		pass(3 * time.Second)
		if got := n.feed(ChangesRequest{}); len(got) == 0 || !strings.HasPrefix(got[0], "1 a ") {
			t.Errorf("%q", got)
		}
		if c := n.states.lookup(copyName); c != nil {
			t.Errorf("the replica is still there: %+v", c)
		}
		if got := n.info(); got.Live == 0 || got.Seq != got.Live {
			t.Errorf("%+v", got)
		}
	})
}

// A request that has read what a failed group wrote keeps the store that failed: it gets the
// error of that one, and the copy goes on without what was lost when the request has ended.
func TestRequestPreparedBeforeTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{})
		defer n.stop()
		n.create(CreateOptions{})
		n.must(n.edit("other", "", "{}"))
		const delay = 100 * time.Millisecond
		disk.delay.Store(int64(delay))
		disk.full.Store(writeFails)
		ctx := context.Background()
		res, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: true, Delayed: true, Edits: []Edit{{ID: "a", Body: []byte("{}")}}})
		if err != nil {
			t.Fatal(err)
		}
		req := DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "a", Parent: res[0].Rev, Body: []byte(`{"v":2}`)}}}
		late := newDecide(ctx, n.states, req)
		late.open = n.openCopy()
		if err := late.prepare(ctx); err != nil {
			t.Fatal(err)
		}
		if late.results[0].Err != nil {
			t.Fatalf("the round was not applied yet: %+v", late.results)
		}
		pass(2 * delay)
		disk.full.Store(space)
		pass(3 * time.Second)
		if err = n.states.submit(ctx, late.open.store, late, false); err == nil || isStale(err) {
			t.Errorf("what was prepared before the failure: %v", err)
		}
		if res, err := n.Decide(ctx, req); err == nil {
			t.Errorf("the copy goes on while a request has the store that failed: %+v", res)
		}
		late.open.Close()
		pass(3 * time.Second)
		res, err = n.Decide(ctx, req)
		if err != nil || !fault.Is(res[0].Err, fault.Conflict) {
			t.Errorf("an edit of a document that was lost: %v %+v", err, res)
		}
		if got := n.show("a"); got != "missing" {
			t.Error(got)
		}
		n.check()
	})
}

// A watcher that waits for a copy to move hears that it has stopped, and that
// it goes on, and then of its changes: with the same watch.
func TestWatchAcrossAFailure(t *testing.T) {
	eachWay(t, func(t *testing.T, way int32) {
		t.Helper()
		var told atomic.Int64
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{OnUpdate: func(string) { told.Add(1) }})
		defer n.stop()
		n.create(CreateOptions{})
		w, err := n.Watch(copyName)
		if err != nil {
			t.Fatal(err)
		}
		signaled := func(want bool, when string) {
			t.Helper()
			synctest.Wait()
			select {
			case <-w.C():
				if !want {
					t.Errorf("a signal %s", when)
				}
			default:
				if want {
					t.Errorf("no signal %s", when)
				}
			}
		}
		n.must(n.edit("a", "", "{}"))
		signaled(true, "after a write")
		disk.full.Store(way)
		if _, err := n.put("lost"); err == nil {
			t.Fatal("written on a full disk")
		}
		signaled(true, "after a failure")
		// Whether what the log holds is on the disk is unknown after a failed sync only.
		if _, _, err := n.Position(t.Context(), copyName); (err == nil) != (way != syncFails) {
			t.Errorf("the copy that has stopped says where it is: %v", err)
		}
		disk.full.Store(space)
		pass(3 * time.Second)
		before := told.Load()
		if _, seq, err := n.Position(t.Context(), copyName); err != nil || seq == 0 {
			t.Errorf("there is space: %d %v", seq, err)
		}
		// Where nothing of the failed group is left, nothing has moved either.
		if signaled(way == syncFails, "when the copy goes on"); told.Load() != before && way != syncFails || told.Load() == before && way == syncFails {
			t.Errorf("the node was told %d times that the copy goes on", told.Load()-before)
		}
		n.must(n.edit("b", "", "{}"))
		signaled(true, "after a write")
		signaled(false, "for nothing")
		pass(2 * writerIdleTime)
		w.Close()
		if c := n.states.lookup(copyName); c != nil {
			t.Errorf("the replica is still there: %+v", c)
		}
		// A watch that begins while the copy has stopped hears of it as well.
		disk.full.Store(way)
		if _, err := n.put("lost2"); err == nil {
			t.Fatal("written on a full disk")
		}
		if w, err = n.Watch(copyName); err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		disk.full.Store(space)
		pass(3 * time.Second)
		n.must(n.edit("c", "", "{}"))
		signaled(true, "after a write")
	})
}

// As long as the copy that has stopped is in use, nothing is forgotten: neither
// while the failed store is pinned, nor while a request waits for its answer.
func TestFailureIsKeptWhileItIsInUse(t *testing.T) {
	eachWay(t, func(t *testing.T, way int32) {
		t.Helper()
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{})
		defer n.stop()
		n.create(CreateOptions{})
		n.must(n.edit("a", "", "{}"))
		store, err := n.engine.Acquire(copyName)
		if err != nil {
			t.Fatal(err)
		}
		c := n.states.lookup(copyName)
		disk.full.Store(way)
		if _, err := n.put("lost"); err == nil {
			t.Fatal("written on a full disk")
		}
		disk.full.Store(space)
		pass(time.Hour)
		if err := n.states.waitDurable(t.Context(), copyName, 2); n.states.reopen(c) || !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("the failed store is in use: %v", err)
		}
		if _, err := n.put("b"); err == nil {
			t.Error("written to a failed store")
		}
		n.engine.Release(store)
		pass(3 * time.Second)
		n.states.mu.Lock()
		c.users++
		n.states.mu.Unlock()
		if n.states.reopen(c) {
			t.Error("the replica is in use")
		}
		n.states.mu.Lock()
		c.users--
		n.states.mu.Unlock()
		if _, err := n.put("b"); err != nil {
			t.Error(err)
		}
		n.check()
	})
}

// A store that has stopped without a group of its own gives no position: it
// would be the position that every feed knows, and a feed would go on waiting.
func TestPositionOfAFailedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var disk fullDisk
		n := open(t, disk.fs(newFS()), Options{})
		defer n.stop()
		n.create(CreateOptions{})
		n.must(n.edit("a", "", "{}"))
		pass(2 * writerIdleTime)
		store, err := n.engine.Acquire(copyName)
		if err != nil {
			t.Fatal(err)
		}
		defer n.engine.Release(store)
		disk.full.Store(syncFails)
		b := store.NewBatch()
		b.PutLocal("_local/x", []byte("{}"))
		c, err := b.Apply()
		if err == nil { // else the log was synced, in vain, before Apply looked
			err = c.Wait()
		}
		if !fault.Is(err, fault.InsufficientStorage) {
			t.Fatalf("written on a full disk: %v", err)
		}
		if _, seq, err := n.Position(t.Context(), copyName); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("%d %v", seq, err)
		}
	})
}

// TestDiskFullNowAndThen fills the disk at random moments under concurrent
// edits, attachments, purges, compaction and reads, and looks whether
// everything that was answered, or shown to any reader, is there in the end.
func TestDiskFullNowAndThen(t *testing.T) {
	for range 2 {
		seed := rand.Uint64()
		ok := t.Run(fmt.Sprintf("seed=%x", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fillDisk(t, seed) })
		})
		if !ok {
			return
		}
	}
}

func fillDisk(t *testing.T, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	var disk fullDisk // without a delay: Pebble would take it with its locks held, which no bubble survives
	n := open(t, disk.fs(newFS()), Options{})
	defer n.stop()
	n.create(CreateOptions{})
	h := &history{content: map[string]big{}, locals: map[string]int{}, enough: -1}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var wg sync.WaitGroup
	clients := []func(context.Context, *node, *history, *rand.Rand, int) error{
		editOwn, editOwn, editShared, editShared, bulk, attach, attach, purgeOwn, putLocal, follow, read, readOld, compactAlways,
	}
	for i, client := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(i)+1))
		wg.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				err := client(ctx, n, h, rng, i*1000000+round)
				if err != nil && ctx.Err() == nil && !fault.Is(err, fault.InsufficientStorage) && !fault.Is(err, fault.Unavailable) {
					t.Errorf("client %d: %v", i, err)
					return
				}
				pass(time.Duration(1+rng.IntN(400)) * time.Millisecond) // fewer edits than a tree keeps revisions
			}
		})
	}
	for range 4 {
		pass(time.Duration(rng.IntN(1000)) * time.Millisecond)
		disk.full.Store(1 + rng.Int32N(3))
		pass(time.Duration(rng.IntN(4000)) * time.Millisecond)
		disk.full.Store(space)
		pass(2500 * time.Millisecond)
		if _, err := n.LocalDocs.Put(ctx, copyName, "_local/space", doc.Rev{}, []byte("{}")); err != nil {
			t.Errorf("there is space: %v", err)
		}
	}
	stop()
	wg.Wait()
	h.verify(t, n)
	n.check()
}

// littleSpace is a file system that tells of little space while it is set.
type littleSpace struct {
	vfs.FS
	on atomic.Bool
}

// GetDiskUsage implements vfs.FS.
func (f *littleSpace) GetDiskUsage(string) (vfs.DiskUsage, error) {
	usage := vfs.DiskUsage{TotalBytes: 1 << 40, AvailBytes: 1 << 30}
	if f.on.Load() {
		usage.AvailBytes = 32 << 20
	}
	return usage, nil
}

// Compaction gives space back, so that it may take what other writes leave.
func TestCompactionInLittleSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &littleSpace{FS: newFS()}
		n := open(t, disk, Options{})
		defer n.stop()
		n.create(CreateOptions{})
		first := n.must(n.edit("a", "", `{"v":1}`))
		n.must(n.edit("a", first, `{"v":2}`))
		disk.on.Store(true)
		pass(time.Second)
		if _, err := n.put("b"); !fault.Is(err, fault.InsufficientStorage) {
			t.Errorf("an edit: %v", err)
		}
		if err := n.compactNow(Limits{}); err != nil {
			t.Errorf("compaction: %v", err)
		}
		if d, err := n.get(OpenRequest{ID: "a", Rev: rev(t, first)}); !fault.Is(err, fault.NotFound) {
			t.Errorf("the old body is still there: %+v, %v", d, err)
		}
		n.check()
	})
}
