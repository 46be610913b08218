package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"divan/storage/doc"
	"divan/storage/fault"
)

// pass lets time go by, in a bubble without waiting for it.
func pass(d time.Duration) { <-time.After(d) }

// Many writers on few documents: every accepted edit has exactly one parent
// that was the leaf, so no update is lost and none is counted twice.
func TestConcurrentWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, newFS(), Options{})
		n.create(CreateOptions{})
		const writers, docs, rounds = 32, 4, 40
		var accepted [docs]atomic.Int64
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range rounds {
					at := (w + i) % docs
					id := fmt.Sprint("d", at)
					parent := ""
					if d, err := n.get(OpenRequest{ID: id}); err == nil {
						parent = d.Rev.String()
					}
					r := n.edit(id, parent, fmt.Sprintf(`{"w":%d,"i":%d}`, w, i))
					switch {
					case r.Err == nil:
						accepted[at].Add(1)
						if got := n.showRev(id, r.Rev.String()); !strings.HasPrefix(got, r.Rev.String()) {
							t.Errorf("own write not readable: %s", got)
						}
					case !fault.Is(r.Err, fault.Conflict):
						t.Error(r.Err)
					}
				}
			})
		}
		wg.Wait()
		total := uint64(0)
		for at := range docs {
			d, err := n.get(OpenRequest{ID: fmt.Sprint("d", at), Conflicts: true, Revs: true})
			if err != nil || len(d.Conflicts) != 0 || int64(d.Rev.Pos) != accepted[at].Load() || uint64(len(d.Revisions.IDs)) != d.Rev.Pos {
				t.Errorf("d%d: %d accepted, but %+v %v", at, accepted[at].Load(), d, err)
			}
			total += d.Rev.Pos
		}
		if got := n.info(); got.Live != docs || got.Seq > total {
			t.Errorf("%+v after %d edits", got, total)
		}
		n.check()
		n.stop()
	})
}

// A copy without writers keeps nothing: no goroutine, no copyState.
func TestIdleCopyCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, newFS(), Options{})
		n.create(CreateOptions{})
		n.must(n.edit("a", "", "{}"))
		if n.states.lookup(copyName) == nil {
			t.Error("the writer has gone at once")
		}
		pass(2 * writerIdleTime)
		synctest.Wait()
		if c := n.states.lookup(copyName); c != nil {
			t.Errorf("the replica is still there: %+v", c)
		}
		n.must(n.edit("b", "", "{}"))
		n.stop()
		if _, err := n.Decide(context.Background(), DecideRequest{Copy: copyName, Edits: make([]Edit, 1)}); !fault.Is(err, fault.Closed) && !fault.Is(err, fault.BadRequest) {
			t.Error(err)
		}
		if _, err := n.Watch(copyName); !fault.Is(err, fault.Closed) {
			t.Error(err)
		}
	})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		n := open(t, newFS(), Options{OnUpdate: func(name string) {
			if name == copyName {
				told.Add(1)
			}
		}})
		n.create(CreateOptions{})
		w, err := n.Watch(copyName)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.C()) != 0 {
			t.Error("something has moved")
		}
		n.must(n.edit("a", "", "{}"))
		synctest.Wait()
		if len(w.C()) != 1 {
			t.Error("a change was not announced")
		}
		<-w.C()
		if _, err := n.LocalDocs.Put(context.Background(), copyName, "_local/x", doc.Rev{}, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		n.edit("a", "", "{}") // refused
		synctest.Wait()
		if len(w.C()) != 0 || told.Load() != 1 {
			t.Errorf("%d signals, told %d times", len(w.C()), told.Load())
		}
		// The watch keeps the copyState while the writer goes.
		pass(2 * writerIdleTime)
		n.must(n.edit("b", "", "{}"))
		synctest.Wait()
		if len(w.C()) != 1 || told.Load() != 2 {
			t.Errorf("%d signals, told %d times", len(w.C()), told.Load())
		}
		w.Close()
		w.Close()
		n.must(n.edit("c", "", "{}"))
		synctest.Wait()
		if len(w.C()) != 1 {
			t.Error("told after Close")
		}
		pass(2 * writerIdleTime)
		if n.states.lookup(copyName) != nil {
			t.Error("the watch is still there")
		}
		n.stop()
	})
}

// slowSync is a file system whose log syncs take a while, or fail.
type slowSync struct {
	delay atomic.Int64
	err   atomic.Pointer[error]
}

func (s *slowSync) fs(under vfs.FS) vfs.FS {
	return errorfs.Wrap(under, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !strings.HasSuffix(op.Path, ".log") || op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData && op.Kind != errorfs.OpFileSyncTo {
			return nil
		}
		pass(time.Duration(s.delay.Load()))
		if err := s.err.Load(); err != nil {
			return *err
		}
		return nil
	}))
}

// D1: nothing of a write is shown before it is durable, though the
// store has it already; batch=ok is answered before.
func TestNothingIsShownBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow slowSync
		n := open(t, slow.fs(newFS()), Options{})
		n.create(CreateOptions{})
		ctx := context.Background()
		n.must(n.edit("old", "", "{}"))
		n.replicate("purged", "1-a", "{}")
		old := n.showRev1("old")
		const delay = 300 * time.Millisecond
		slow.delay.Store(int64(delay))
		begun := time.Now()
		if r, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: true, Delayed: true, Edits: []Edit{
			{ID: "new", Body: []byte("{}")}, {ID: "old", Parent: rev(t, old), Body: []byte("{}")}, {ID: "_local/x", Body: []byte("{}")},
		}}); err != nil || r[0].Err != nil {
			t.Fatal(err)
		}
		if time.Since(begun) >= delay {
			t.Error("batch=ok waited for the disk")
		}
		if n.show("other") != "missing" || time.Since(begun) != 0 {
			// A missing document has to wait for local documents and purges:
			// that they share a wait is the price of having no sequence.
			t.Logf("a missing document took %v", time.Since(begun))
		}
		reads := map[string]func() error{
			"open":    func() error { _, err := n.get(OpenRequest{ID: "new"}); return err },
			"tree":    func() error { _, err := n.get(OpenRequest{ID: "old", Revs: true}); return err },
			"by rev":  func() error { _, err := n.get(OpenRequest{ID: "old", Rev: rev(t, old)}); return err },
			"local":   func() error { _, err := n.LocalDocs.Get(ctx, copyName, "_local/x"); return err },
			"info":    func() error { _, err := n.Info(ctx, copyName); return err },
			"rows":    func() error { n.rows(DocsRequest{}); return nil },
			"feed":    func() error { n.feed(ChangesRequest{}); return nil },
			"locals":  func() error { n.locals(LocalDocsRequest{}); return nil },
			"missing": func() error { _, err := n.Missing(ctx, copyName, []IDRevs{{ID: "new"}}); return err },
			"refusal": func() error { _ = n.edit("new", "", "{}"); return nil },
		}
		var wg sync.WaitGroup
		for name, read := range reads {
			wg.Go(func() {
				if err := read(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if time.Since(begun) < delay {
					t.Errorf("%s answered after %v", name, time.Since(begun))
				}
			})
		}
		wg.Wait()
		begun = time.Now()
		go n.purge("purged", "1-a")
		synctest.Wait()
		if got := n.show("purged"); got != "missing" || time.Since(begun) < delay {
			t.Errorf("the purge was shown after %v: %s", time.Since(begun), got)
		}
		slow.delay.Store(0)
		synctest.Wait()
		n.stop()
	})
}

// A failed sync stops the copy, with a clear error and without showing what
// may be lost; what was durable before is not shown either by a store that has
// stopped, until it is opened again (TestWritesGoOnWhenThereIsSpace).
func TestFailedSyncStopsTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow slowSync
		mem := newFS()
		n := open(t, slow.fs(mem), Options{})
		n.create(CreateOptions{})
		n.must(n.edit("a", "", "{}"))
		broken := errors.New("disk gone")
		slow.err.Store(&broken)
		ctx := context.Background()
		_, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "b", Body: []byte("{}")}}})
		if err == nil || !strings.Contains(err.Error(), "stopped") {
			t.Fatalf("the failed sync was answered with %v", err)
		}
		for range 2 {
			_, err = n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "c", Body: []byte("{}")}}})
			if err == nil {
				t.Fatal("the copy still takes writes")
			}
		}
		if _, err := n.get(OpenRequest{ID: "b"}); err == nil || fault.Is(err, fault.NotFound) {
			t.Fatalf("reading what may be lost: %v", err)
		}
		if _, err := n.Info(ctx, copyName); err == nil {
			t.Fatal("info of what may be lost")
		}
		_ = n.Close()
		_ = n.engine.Close()
	})
}

// Validation functions see the old document, are asked once per old document,
// and never on the writer's goroutine.
func TestValidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		gate := make(chan struct{})
		var hold atomic.Bool
		validate := func(_ context.Context, r ValidateRequest) error {
			old := "-"
			if r.Old != nil {
				old = r.Old.Rev.String() + string(r.Old.Body)
			}
			mu.Lock()
			seen = append(seen, fmt.Sprintf("%s %s %s%s", r.New.ID, r.New.Rev, old, map[bool]string{true: " deleted"}[r.New.Deleted]))
			mu.Unlock()
			if hold.Load() {
				<-gate
			}
			if strings.Contains(string(r.New.Body), "bad") {
				return fault.New(fault.Forbidden, "bad")
			}
			return nil
		}
		n := open(t, newFS(), Options{Validator: func(_ context.Context, name, _ string) (Validate, error) {
			if name != copyName {
				t.Errorf("rules of %q", name)
			}
			return validate, nil
		}})
		n.create(CreateOptions{})
		said := func(want ...string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if !equal(seen, want...) {
				t.Errorf("asked about %q, want %q", seen, want)
			}
			seen = nil
		}
		r1 := n.must(n.edit("a", "", `{"v":1}`))
		said("a 0- -")
		if r := n.edit("a", r1, `{"v":"bad"}`); !fault.Is(r.Err, fault.Forbidden) || fault.Reason(r.Err) != "bad" {
			t.Error(r.Err)
		}
		said("a " + r1 + " " + r1 + `{"v":1}`)
		n.edit("a", "", `{"v":"bad"}`) // a conflict before anything else
		n.must(n.edit("_design/x", "", `{"v":"bad"}`))
		n.edits(true, Edit{ID: "_local/x", Body: []byte(`{"v":"bad"}`)})
		said()
		r2 := n.must(n.remove("a", r1))
		said("a " + r1 + " " + r1 + `{"v":1} deleted`)
		n.must(n.edit("a", "", `{"v":2}`))
		said("a 0- -")
		_ = r2
		// Replicated: the new revision, its nearest stored ancestor; only new leaves.
		n.edits(false, replicated(t, "r", "2-b a", `{"v":2}`), replicated(t, "r", "4-d c b a", `{"v":4}`),
			replicated(t, "r", "3-c b a", `{"v":"bad"}`), replicated(t, "r", "2-b a", `{"v":"bad"}`))
		said("r 2-b -", `r 4-d 2-b{"v":2}`)
		refused, err := n.Follow(context.Background(), FollowRequest{Copy: copyName, Edits: []Edit{replicated(t, "t", "1-a", `{"v":"bad"}`)}})
		if err != nil || refused[0] != nil {
			t.Error(err, refused)
		}
		said()
		// While a validation function thinks, another edit brings a nearer
		// ancestor: it is asked again about that.
		hold.Store(true)
		done := make(chan EditResult)
		go func() { done <- n.replicate("r", "6-f e d", `{"v":6}`) }()
		synctest.Wait()
		hold.Store(false)
		n.replicate("r", "5-e d", `{"v":5}`)
		close(gate)
		if r := <-done; r.Err != nil {
			t.Error(r.Err)
		}
		said(`r 6-f 4-d{"v":4}`, `r 5-e 4-d{"v":4}`, `r 6-f 5-e{"v":5}`)
		n.check()
		n.stop()
	})
}

// A request that ends while it waits is not done, and says so.
func TestRequestThatEndsInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow slowSync
		n := open(t, slow.fs(newFS()), Options{})
		n.create(CreateOptions{})
		n.must(n.edit("a", "", "{}"))
		slow.delay.Store(int64(time.Second))
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		var done, given atomic.Int64
		for i := range 50 {
			wg.Go(func() {
				id := fmt.Sprint("d", i)
				_, err := n.Decide(ctx, DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: id, Body: []byte("{}")}}})
				got := n.show(id) //nolint:contextcheck // the read is about afterwards, when ctx has ended
				switch {
				case err == nil && got != "missing":
					done.Add(1)
				case errors.Is(err, context.DeadlineExceeded) && got == "missing":
					given.Add(1)
				default:
					t.Errorf("%s: %v, then %s", id, err, got)
				}
			})
			pass(5 * time.Millisecond)
		}
		wg.Wait()
		slow.delay.Store(0)
		t.Logf("%d done, %d given up", done.Load(), given.Load())
		if done.Load() == 0 || given.Load() == 0 {
			t.Error("one of the two was not tried")
		}
		n.stop()
	})
}

// A batch that cannot even be begun is an error, never a success that writes
// nothing.
func TestStoreThatCannotBeOpenedForWriting(t *testing.T) {
	var broken atomic.Bool
	fs := errorfs.Wrap(newFS(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return errors.New("disk gone")
		}
		return nil
	}))
	n := open(t, fs, Options{})
	defer n.stop()
	n.create(CreateOptions{})
	broken.Store(true)
	put := DecideRequest{Copy: copyName, NewEdits: true, Edits: []Edit{{ID: "a", Body: []byte("{}")}}}
	if res, err := n.Decide(context.Background(), put); err == nil {
		t.Fatalf("answered with %+v", res)
	}
	broken.Store(false)
	if res, err := n.Decide(context.Background(), put); err != nil || res[0].Err != nil {
		t.Fatal(res, err)
	}
}

// Compaction runs in the background, once per copy, is listed, and ends with
// the node or the copy.
func TestCompactionInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow slowSync
		n := open(t, slow.fs(newFS()), Options{})
		n.create(CreateOptions{})
		ctx := context.Background()
		if len(n.Compactions.Running()) != 0 || n.info().Compacting {
			t.Error("something is compacted")
		}
		for i, end := range []func() error{
			func() error { slow.delay.Store(0); return nil },
			func() error { slow.delay.Store(0); return n.Copies.Drop(ctx, copyName) },
			func() error { slow.delay.Store(0); return n.Close() },
		} {
			id := fmt.Sprint("d", i)
			n.must(n.edit(id, n.must(n.edit(id, "", "{}")), `{"v":2}`)) // something to drop
			slow.delay.Store(int64(time.Hour))
			for range 2 {
				if err := n.Compactions.Start(ctx, copyName, Limits{}, "db"); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			got := n.Compactions.Running()
			if len(got) != 1 || got[0].Copy != copyName || got[0].DB != "db" || got[0].StartedMS == 0 || got[0].UpdatedMS < got[0].StartedMS {
				t.Errorf("%+v", got)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Hour)
			if got := n.Compactions.Running(); len(got) != 0 {
				t.Errorf("still %+v", got)
			}
			if _, err := n.Info(ctx, copyName); fault.Is(err, fault.NoCopy) {
				n.create(CreateOptions{})
			}
		}
		if err := n.Compactions.Start(ctx, copyName, Limits{}, "db"); !fault.Is(err, fault.Closed) {
			t.Error(err)
		}
		n.stop()
	})
}

// Run ends the Local with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := open(t, newFS(), Options{})
		n.create(CreateOptions{})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- n.Run(ctx) }()
		n.must(n.edit("a", "", "{}"))
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if _, err := n.Watch(copyName); !fault.Is(err, fault.Closed) {
			t.Fatal(err)
		}
		n.stop()
	})
}
