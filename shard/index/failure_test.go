package index

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// fails makes documents with these ids fail, and counts how often they are tried.
func (r *revisions) fails(ids ...string) (tries *atomic.Int64) {
	tries = &atomic.Int64{}
	r.fail = func(d Doc) error {
		for _, id := range ids {
			if d.ID == id && d.Doc != nil && d.Doc.Rev.Pos == 1 {
				tries.Add(1)
				return fault.New(fault.BadFunction, "Too many rows.")
			}
		}
		return nil
	}
	return tries
}

// A document that fails is tried again with growing pauses, not by each request and
// each turn of the background; what comes before it stays in the index, and is not
// mapped again.
func TestFailingDocument(t *testing.T) {
	for _, filled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n := start(t)
			if filled {
				n.built()
			}
			n.write(0, 1000, 1, false)
			tries := n.kind.fails("d00600")
			u, _ := n.use()
			began := time.Now()
			for try := int64(1); try < 15; try++ {
				for request := range 4 {
					err := u.Update(t.Context())
					if !fault.Is(err, fault.BadFunction) || !strings.Contains(fault.Reason(err), `Too many rows. (document "d00600", test of _design/d; it is tried again at `) {
						t.Fatalf("request %d: %v", request, err)
					}
					u.Start()
					synctest.Wait()
				}
				if got := tries.Load(); got != try {
					t.Fatalf("%d tries after %v, want %d", got, time.Since(began), try)
				}
				if got := len(u.indexed(t)); got != 600 {
					t.Fatalf("the index has %d documents", got)
				}
				if mapped := n.kind.mapped.Load(); try > 1 && mapped > batchDocs {
					t.Fatalf("%d documents were mapped again", mapped)
				}
				n.kind.mapped.Store(0)
				tasks := n.m.Tasks()
				if len(tasks) != 1 || tasks[0].Document != "d00600" || !strings.Contains(tasks[0].Error, "Too many rows.") || tasks[0].RetryMS <= time.Now().UnixMilli() {
					t.Fatalf("tasks %+v", tasks)
				}
				pass(time.Until(time.UnixMilli(tasks[0].RetryMS)) + time.Millisecond)
			}
			// 1 s, 2 s, … 256 s, and five times 5 minutes.
			if took := time.Since(began); took < 511*time.Second+25*time.Minute || took > 512*time.Second+25*time.Minute {
				t.Errorf("14 tries took %v", took)
			}
			n.kind.fail = nil
			n.check(u)
			if tasks := n.m.Tasks(); len(tasks) != 0 {
				t.Errorf("tasks %+v", tasks)
			}
		})
	}
}

// A document that was changed, and an operator who compacts the index, make it try at
// once.
func TestFailingDocumentIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		n.write(0, 10, 1, false)
		tries := n.kind.fails("d00003", "d00005", "d00007")
		u, _ := n.use()
		fails := func(id string) {
			t.Helper()
			if err := u.Update(t.Context()); !strings.Contains(fault.Reason(err), id) {
				t.Fatalf("%v, want that of %s", err, id)
			}
		}
		fails("d00003")
		fails("d00003")
		n.write(9, 10, 2, false) // another one
		fails("d00003")
		n.write(3, 4, 2, false)
		fails("d00005")
		n.write(5, 6, 2, true)
		fails("d00007")
		if got := tries.Load(); got != 3 {
			t.Errorf("%d tries", got)
		}
		must(t, n.m.Compact(t.Context(), copyName, n.spec()))
		synctest.Wait()
		fails("d00007")
		if got := tries.Load(); got != 4 {
			t.Errorf("%d tries", got)
		}
		_, err := n.shards.Purge(t.Context(), copyName, []shard.PurgeItem{{ID: "d00007", Revs: []doc.Rev{{Pos: 1, ID: strings.Repeat("0", 31) + "1"}}}})
		must(t, err)
		n.check(u)
	})
}

// A document that fails and is written again and again, or two of them in turn, is not
// tried with each write.
func TestFailingDocumentIsWrittenAgain(t *testing.T) {
	for _, others := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			n := start(t)
			n.write(0, 10, 1, false)
			var tries atomic.Int64
			failing := true
			n.kind.fail = func(d Doc) error {
				if failing && d.Doc != nil && d.ID < fmt.Sprintf("d%05d", others) {
					tries.Add(1)
					return fault.New(fault.BadFunction, "Too many rows.")
				}
				return nil
			}
			u, _ := n.use()
			for i := range 600 {
				if err := u.Update(t.Context()); !fault.Is(err, fault.BadFunction) {
					t.Fatalf("round %d: %v", i, err)
				}
				n.write(i%others, i%others+1, 2+i, false)
				pass(time.Second)
			}
			if got := tries.Load(); got < 40 || got > 60 { // 9, those after 1, 2, 4, 8 s, and one in 15 s
				t.Errorf("%d of %d: %d tries in ten minutes", others, 10, got)
			}
			pass(lastChanged)
			failing = false
			n.check(u)
		})
	}
}

// After a start a document that fails is tried once, and then with pauses again.
func TestFailingDocumentAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		n := startOn(t, fs)
		must(t, n.shards.Copies.Create(t.Context(), copyName, shard.CreateOptions{}))
		for range 2 {
			n.write(0, 1000, 1, false)
			tries := n.kind.fails("d00600")
			u, release := n.use()
			for range 5 {
				u.Start()
				synctest.Wait()
				if err := u.Update(t.Context()); !fault.Is(err, fault.BadFunction) {
					t.Fatal(err)
				}
			}
			if got := tries.Load(); got != 1 {
				t.Errorf("%d tries", got)
			}
			if got := len(u.indexed(t)); got != 600 {
				t.Errorf("the index has %d documents", got)
			}
			release()
			n.stop()
			n = startOn(t, fs)
		}
	})
}

// What says nothing about a document is tried again at once.
func TestOtherFailures(t *testing.T) {
	n := start(t)
	n.write(0, 10, 1, false)
	u, _ := n.use()
	for range 3 {
		refusal := errors.New("not now")
		tried := false
		n.kind.onMap = func([]Doc) error { tried = true; return refusal }
		if err := u.Update(t.Context()); !errors.Is(err, refusal) || !tried {
			t.Fatalf("%v, tried %v", err, tried)
		}
	}
	n.kind.onMap = nil
	n.check(u)
}
