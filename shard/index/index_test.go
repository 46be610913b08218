package index

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/storagetest"
)

func TestFollows(t *testing.T) {
	n := start(t)
	u, _ := n.use()
	n.check(u) // an empty copy
	n.write(0, 1000, 1, false)
	n.check(u)
	n.write(100, 130, 2, false)
	n.write(200, 230, 2, true)
	n.check(u)
	purged := []shard.PurgeItem{}
	for _, id := range []string{"d00003", "d00110", "d00210"} {
		generation := uint64(2)
		if id == "d00003" {
			generation = 1
		}
		purged = append(purged, shard.PurgeItem{ID: id, Revs: []doc.Rev{{Pos: generation, ID: strings.Repeat("0", 31) + string(rune('0'+generation))}}})
	}
	_, err := n.shards.Purge(t.Context(), copyName, purged)
	must(t, err)
	n.check(u)
	if got := len(u.indexed(t)); got != 1000-30-2 {
		t.Errorf("%d documents", got)
	}
	if want := []uint64{0, 1000, 60, 3}; !slices.Equal(n.kind.begun[:4], want) {
		t.Errorf("updates of %v changes, want %v", n.kind.begun, want)
	}
	// What is up to date is not touched.
	updates := len(n.kind.begun)
	n.check(u)
	if len(n.kind.begun) != updates {
		t.Errorf("updates of %v changes, of which the last is for nothing", n.kind.begun)
	}
}

// Documents that are applied in several batches are all there, and the position does
// not move before they are.
func TestAppliesInSeveralBatches(t *testing.T) {
	n := start(t)
	u, _ := n.use()
	n.kind.atOnce = 7
	n.write(0, 1000, 1, false)
	n.check(u)
	n.write(0, 400, 2, false)
	n.write(400, 900, 2, true)
	n.check(u)
	purged := []shard.PurgeItem{}
	for i := range 20 {
		purged = append(purged, shard.PurgeItem{ID: fmt.Sprintf("d%05d", i), Revs: []doc.Rev{{Pos: 2, ID: strings.Repeat("0", 31) + "2"}}})
	}
	_, err := n.shards.Purge(t.Context(), copyName, purged)
	must(t, err)
	n.check(u)
	if got := len(u.indexed(t)); got != 500-20 {
		t.Errorf("%d documents", got)
	}
}

// A kind that gathers has few commits, and all documents when it is up to date.
func TestGathers(t *testing.T) {
	n := start(t)
	const docs = 6000
	n.write(0, docs, 1, false)
	kind := &gathering{revisions: n.kind}
	spec := n.spec()
	spec.Open = func(context.Context) (Kind, bool, error) { return kind, false, nil }
	u, err := n.m.Acquire(t.Context(), copyName, spec)
	must(t, err)
	defer u.Release()
	must(t, u.Update(t.Context()))
	count, _, err := u.Index.Get(nil, []byte(countKey))
	must(t, err)
	if len(count) != docs || kind.flushes != 2 {
		t.Errorf("%d documents in %d batches", len(count), kind.flushes)
	}
	n.write(0, 10, 2, false)
	must(t, u.Update(t.Context()))
	if kind.flushes != 3 || len(kind.left) > 0 {
		t.Errorf("%d batches, %d documents are left", kind.flushes, len(kind.left))
	}
}

// The purge log of a copy waits for its indexes; an index that is dropped does not
// hold it any more.
func TestPurgeCheckpoint(t *testing.T) {
	n := start(t)
	n.write(0, 10, 1, false)
	n.built()
	checkpoint := func() string {
		t.Helper()
		d, err := n.shards.LocalDocs.Get(t.Context(), copyName, checkpointID(Name{View, signature}))
		if fault.Is(err, fault.NotFound) {
			return ""
		}
		must(t, err)
		return string(d.Body)
	}
	if got := checkpoint(); got != `{"purge_seq":0,"type":"index"}` {
		t.Errorf("the checkpoint is %q", got)
	}
	_, err := n.shards.Purge(t.Context(), copyName, []shard.PurgeItem{{ID: "d00003", Revs: []doc.Rev{{Pos: 1, ID: strings.Repeat("0", 31) + "1"}}}})
	must(t, err)
	n.built()
	if got := checkpoint(); got != `{"purge_seq":1,"type":"index"}` {
		t.Errorf("the checkpoint is %q", got)
	}
	must(t, n.m.Cleanup(t.Context(), copyName, View, []string{signature}))
	if got := checkpoint(); got == "" {
		t.Error("an index that is kept has no checkpoint")
	}
	must(t, n.m.Cleanup(t.Context(), copyName, View, nil))
	if got := checkpoint(); got != "" {
		t.Errorf("a dropped index has the checkpoint %s", got)
	}
	if names, err := n.engine.Indexes().Signatures(copyName); err != nil || len(names) != 0 {
		t.Errorf("indexes %v, %v", names, err)
	}
	n.built() // and it can be built again
}

// A clean-up of one type leaves indexes of others alone, also with the same signature, and each
// has a place and a checkpoint of its own.
func TestTypesOfIndexes(t *testing.T) {
	n := start(t)
	n.write(0, 10, 1, false)
	n.m.Register("other", func(context.Context, string, Definition) (Kind, bool, error) { return n.kind, false, nil })
	n.built()
	other := Definition{Name: Name{"other", signature}, Design: "_design/d"}
	must(t, n.m.Build(t.Context(), copyName, other))
	on := func(want ...Name) {
		t.Helper()
		got, err := namesOf(n.engine, copyName)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("indexes %v, %v; %v wanted", got, err, want)
		}
		for _, name := range []Name{{View, signature}, other.Name} {
			_, err := n.shards.LocalDocs.Get(t.Context(), copyName, checkpointID(name))
			if slices.Contains(want, name) == fault.Is(err, fault.NotFound) {
				t.Errorf("the checkpoint of %v: %v", name, err)
			}
		}
	}
	on(Name{View, signature}, other.Name)
	must(t, n.m.Cleanup(t.Context(), copyName, View, nil))
	on(other.Name)
	n.built()
	must(t, n.m.Cleanup(t.Context(), copyName, "other", nil))
	on(Name{View, signature})
	if err := n.m.Build(t.Context(), copyName, Definition{Name: Name{"unheard", signature}}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an index of a type that the node does not keep: %v", err)
	}
}

// An index of any type that was set aside while another user has it is found again by that one.
func TestReopenOfAnyType(t *testing.T) {
	for _, typ := range []Type{View, Search} {
		n := start(t)
		n.write(0, 10, 1, false)
		spec := n.spec()
		spec.Type = typ
		one, err := n.m.Acquire(t.Context(), copyName, spec)
		must(t, err)
		two, err := n.m.Acquire(t.Context(), copyName, spec)
		must(t, err)
		must(t, one.Update(t.Context()))
		one.Discard(fault.New(fault.Corruption, "damaged"))
		one.Release()
		must(t, two.Update(t.Context()))
		two.Release()
		if names, err := namesOf(n.engine, copyName); err != nil || !slices.Equal(names, []Name{spec.Name}) {
			t.Errorf("indexes %v, %v", names, err)
		}
	}
}

// once does something when the first documents are mapped.
func once(do func()) func([]Doc) error {
	var first sync.Once
	return func([]Doc) error {
		first.Do(do)
		return nil
	}
}

// Calls that wait at the same time share one update.
func TestUpdatesAreShared(t *testing.T) {
	n := start(t)
	n.write(0, 100, 1, false)
	entered, leave := make(chan struct{}), make(chan struct{})
	n.kind.onMap = once(func() {
		close(entered)
		<-leave
	})
	u, _ := n.use()
	results := make(chan error)
	go func() { results <- u.Update(t.Context()) }()
	<-entered
	if tasks := n.m.Tasks(); len(tasks) != 1 || tasks[0].Copy != copyName || tasks[0].Design != "_design/d" || tasks[0].Total != 100 || tasks[0].Done != 0 {
		t.Errorf("tasks %+v", tasks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	other, _ := n.use()
	go func() { results <- other.Update(ctx) }()
	cancel() // who gives up does not stop the others
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled update: %v", err)
	}
	close(leave)
	must(t, <-results)
	if len(n.kind.begun) != 1 || len(n.m.Tasks()) != 0 {
		t.Errorf("updates of %v changes, tasks %v", n.kind.begun, n.m.Tasks())
	}
	n.check(other)
}

// What a kind of index cannot bear is an error of the update, and nothing of it is in
// the index; the next update may succeed.
func TestKindFails(t *testing.T) {
	n := start(t)
	n.write(0, 300, 1, false)
	u, _ := n.use()
	for _, docs := range []int{300, 20} { // on several goroutines, and on one
		n.kind.onMap = func([]Doc) error { panic("no way") }
		if err := u.Update(t.Context()); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("%d documents that make it panic: %v", docs, err)
		}
		refusal := errors.New("not this one")
		n.kind.onMap = func([]Doc) error { return refusal }
		if err := u.Update(t.Context()); !errors.Is(err, refusal) {
			t.Errorf("%d documents that are refused: %v", docs, err)
		}
		n.kind.onMap = nil
		n.check(u)
		n.write(0, 20, 2, false)
	}
}

// An index whose content makes no sense is set aside and built anew.
func TestDamageIsMended(t *testing.T) {
	fs := vfs.NewMem()
	n := startOn(t, fs)
	must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
	n.write(0, 300, 1, false)
	n.built()
	u, release := n.use()
	b := u.Index.NewBatch(false)
	b.Set([]byte("rstray"), []byte("1-x"))
	b.Set([]byte(positionKey), []byte{99})
	must(t, b.Commit(t.Context()))
	b.Close()
	release()
	n.stop()
	n = startOn(t, fs) // the position in memory is gone, and that on disk is damaged
	n.built()
	if want := []uint64{300}; !slices.Equal(n.kind.begun, want) {
		t.Errorf("updates of %v changes, want %v", n.kind.begun, want)
	}
}

// An index that is behind what the purge log still has is built anew.
func TestBehindThePurgeLog(t *testing.T) {
	n := start(t)
	n.write(0, 300, 1, false)
	n.built()
	must(t, n.m.removeCheckpoint(t.Context(), copyName, Name{View, signature})) // nothing holds the log back
	for _, id := range []string{"d00001", "d00002", "d00003"} {
		_, err := n.shards.Purge(t.Context(), copyName, []shard.PurgeItem{{ID: id, Revs: []doc.Rev{{Pos: 1, ID: strings.Repeat("0", 31) + "1"}}}})
		must(t, err)
	}
	must(t, n.shards.Compactions.Start(t.Context(), copyName, shard.Limits{PurgedInfos: 1}, "db"))
	for len(n.shards.Compactions.Running()) > 0 {
		runtime.Gosched()
	}
	n.built()
	if want := []uint64{300, 297}; !slices.Equal(n.kind.begun, want) {
		t.Errorf("updates of %v changes, want %v", n.kind.begun, want)
	}
}

// An update in the background follows what was written, and stops with the manager.
func TestWarm(t *testing.T) {
	n := start(t)
	n.write(0, 1000, 1, false)
	mapped := make(chan struct{}, 100)
	n.kind.onMap = func([]Doc) error {
		mapped <- struct{}{}
		return nil
	}
	n.m.warm(t.Context(), copyName, n.spec())
	for range 4 { // batches
		<-mapped
	}
	u, _ := n.use()
	must(t, u.Update(t.Context()))
	if n.kind.mapped.Load() != 1000 || len(n.kind.begun) != 1 {
		t.Errorf("%d documents were mapped in %d updates", n.kind.mapped.Load(), len(n.kind.begun))
	}
	u.f.mu.Lock()
	running := u.f.mu.running
	u.f.mu.Unlock()
	if running != nil { // it covers all, and may still look for changes
		<-running.ended
	}
	n.write(0, 1000, 2, false)
	held, leave := make(chan struct{}), make(chan struct{})
	n.kind.onMap = once(func() {
		close(held)
		<-leave
	})
	u.Start()
	<-held
	snap, err := u.Index.Snapshot()
	must(t, err)
	st, err := u.Status(t.Context(), snap)
	snap.Close()
	if err != nil || st.Pending != 1000 || !st.Updating || st.Waiting != 0 || !st.Filled || st.Seq != 1000 {
		t.Errorf("status %+v, %v", st, err)
	}
	closed := make(chan error)
	go func() { closed <- n.m.Close() }()
	close(leave)
	must(t, <-closed)
	if err := u.Update(t.Context()); !fault.Is(err, fault.Closed) {
		t.Errorf("an update of a closed manager: %v", err)
	}
	if _, err := n.m.Acquire(t.Context(), copyName, n.spec()); !fault.Is(err, fault.Closed) {
		t.Errorf("an index of a closed manager: %v", err)
	}
}

// An update that does not end holds up those of its own database in the background, and no
// others.
func TestWarmGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		const other = "shards/00000000-ffffffff/other.1"
		must(t, n.shards.Copies.Create(t.Context(), other, shard.CreateOptions{}))
		n.write(0, 10, 1, false)
		leave := make(chan struct{})
		n.kind.onMap = once(func() { <-leave })
		begun := make(chan string, 3)
		warm := func(copyName, name string) {
			k := &revisions{onBegin: func() { begun <- name }}
			n.m.warm(t.Context(), copyName, Spec{Name: Name{View, name}, Design: "_design/" + name, Open: func(context.Context) (Kind, bool, error) { return k, false, nil }})
		}
		n.m.warm(t.Context(), copyName, n.spec())
		warm(copyName, "same")
		warm(other, "other")
		<-time.After(2 * warmTurn)
		synctest.Wait()
		close(leave)
		if len(begun) != 1 {
			t.Errorf("%d updates have begun beside one that does not end", len(begun))
		}
		if first := <-begun; first != "other" {
			t.Errorf("%s has begun", first)
		}
		if second := <-begun; second != "same" {
			t.Errorf("%s has begun", second)
		}
	})
}

// A clean-up ends the work on an index.
func TestCleanupStopsUpdates(t *testing.T) {
	n := start(t)
	n.write(0, 2000, 1, false)
	u, release := n.use()
	held, leave := make(chan struct{}), make(chan struct{})
	n.kind.onMap = once(func() {
		close(held)
		<-leave
	})
	result := make(chan error)
	go func() { result <- u.Update(t.Context()) }()
	<-held
	cleaned := make(chan error)
	go func() { cleaned <- n.m.Cleanup(t.Context(), copyName, View, nil) }()
	close(leave)
	must(t, <-cleaned)
	// Who waited reads what there was, or hears that it has gone.
	if err := <-result; err != nil && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.NoCopy) {
		t.Errorf("the update that was under way: %v", err)
	}
	release()
	n.built()
}

// The end of a copy ends the work on its indexes, and they are forgotten.
func TestDropEndsUpdates(t *testing.T) {
	n := start(t)
	n.write(0, 2000, 1, false)
	u, release := n.use()
	held, leave := make(chan struct{}), make(chan struct{})
	n.kind.onMap = once(func() {
		close(held)
		<-leave
	})
	result := make(chan error)
	go func() { result <- u.Update(t.Context()) }()
	<-held
	must(t, n.shards.Copies.Drop(t.Context(), copyName))
	close(leave)
	if err := <-result; !fault.Is(err, fault.NoCopy) && !fault.Is(err, fault.Unavailable) {
		t.Errorf("the update that was under way: %v", err)
	}
	if mapped := n.kind.mapped.Load(); mapped >= 2000 {
		t.Errorf("%d documents were mapped", mapped)
	}
	release()
	n.m.followers.work.Wait()
	if n.kind.closes != 1 || len(n.m.followers.mu.byKey) != 0 {
		t.Errorf("%d followers are left, %d were closed", len(n.m.followers.mu.byKey), n.kind.closes)
	}
}

// A follower of an index does not keep its store in memory: a store that is not in
// use is closed long before the follower is forgotten.
func TestClosedIndexIsCollected(t *testing.T) {
	n := start(t)
	n.write(0, 10, 1, false)
	u, err := n.m.Acquire(t.Context(), copyName, n.spec())
	must(t, err)
	n.check(u)
	store := weak.Make(u.Index)
	u.Release()
	must(t, n.engine.Drop(copyName)) // the followers are not told
	for range 10 {
		runtime.GC()
	}
	if store.Value() != nil {
		t.Error("a closed index is still in memory")
	}
	if len(n.m.followers.mu.byKey) != 1 {
		t.Errorf("%d followers", len(n.m.followers.mu.byKey))
	}
}

// After a power cut an index goes on from what was on disk, and holds the same.
func TestGoesOnAfterPowerCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 24 {
		fs := storagetest.NewCrashFS()
		n := startOn(t, fs)
		must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
		n.write(0, 3000, 1, false)
		var left storagetest.CrashFS
		var parts, read atomic.Int64
		u, _ := n.use()
		last := int64(6 + rng.IntN(6)) // that is mapped before the cut
		cut := vfs.CrashCloneCfg{UnsyncedDataPercent: round % 3 * 50, RNG: rng}
		n.kind.onMap = func([]Doc) error {
			if parts.Add(1) != last {
				return nil
			}
			read.Store(n.kind.mapped.Load())
			defer func() { left = fs.CrashClone(cut) }()
			return u.Index.Flush()
		}
		n.check(u)
		n = startOn(t, left)
		n.write(50, 60, 2, false)
		n.built()
		// Of the parts that had been mapped five were under way at most. Ten documents
		// come twice.
		if mapped, before := n.kind.mapped.Load(), read.Load(); mapped > 10+3000-(before-5*batchDocs) || mapped < 3000-before {
			t.Errorf("%d documents were mapped again, %d had been mapped", mapped, before)
		}
	}
}
