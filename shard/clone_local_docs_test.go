package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/shard/ring"
	"divan/storage"
	"divan/storage/doc"
)

func (n *node) putLocal(ctx context.Context, name, id string, r doc.Rev, body string) {
	n.t.Helper()
	if _, err := n.LocalDocs.Put(ctx, name, id, r, []byte(body)); err != nil {
		n.t.Error(err)
	}
}

// localsOf lists the local documents of a copy with their stored bytes.
func (n *node) localsOf(name string, of func(id string) bool) string {
	n.t.Helper()
	var out []string
	n.acquire(n.t, name, func(s *storage.Store) {
		snap, err := s.Snapshot()
		if err != nil {
			n.t.Fatal(err)
		}
		defer func() { _ = snap.Close() }()
		it, err := snap.Locals(storage.Range{})
		if err != nil {
			n.t.Fatal(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			if of(string(it.ID())) {
				out = append(out, fmt.Sprintf("%s %q", it.ID(), it.Value()))
			}
		}
		if err := it.Close(); err != nil {
			n.t.Fatal(err)
		}
	})
	return strings.Join(out, "\n")
}

// Local documents of clients come with their revisions, into the half that they
// belong to; what the target has and the source has not goes. What the server keeps for
// itself stays as it is on both sides.
func TestCloneLocalDocs(t *testing.T) {
	n := start(t, Options{})
	n.createHalves(CreateOptions{})
	ctx := context.Background()
	clone := func() {
		t.Helper()
		for _, o := range halves {
			if err := n.Clones.LocalDocs(ctx, o); err != nil {
				t.Fatal(err)
			}
			mine := func(id string) bool { return o.Range.Contains(ring.Hash(id, false)) && !isSystem([]byte(id)) }
			if got, want := n.localsOf(o.Target, mine), n.localsOf(copyName, mine); got != want {
				t.Fatalf("%s\nwant\n%s", got, want)
			}
		}
	}
	for i := range 700 { // several pages and batches
		n.putLocal(ctx, copyName, fmt.Sprintf("_local/%d", i), doc.Rev{ID: fmt.Sprint(i)}, fmt.Sprintf(`{"i":%d,"x":"%s"}`, i, strings.Repeat("x", 4000)))
	}
	own := []string{PurgePrefix + "index-1", localPrefix + "shard-sync-x-y"}
	for _, id := range own {
		n.putLocal(ctx, copyName, id, doc.Rev{}, `{"source":1}`)
		n.putLocal(ctx, halves[0].Target, id, doc.Rev{}, `{"target":1}`)
	}
	clone()
	for i := range 700 {
		id := fmt.Sprintf("_local/%d", i)
		switch i % 5 {
		case 0:
			if _, err := n.LocalDocs.Delete(ctx, copyName, id, doc.Rev{}); err != nil {
				t.Fatal(err)
			}
		case 1:
			n.putLocal(ctx, copyName, id, doc.Rev{ID: "7"}, `{"changed":true}`)
		case 2: // the same content with another revision
			n.putLocal(ctx, copyName, id, doc.Rev{ID: "1000"}, fmt.Sprintf(`{"i":%d,"x":"%s"}`, i, strings.Repeat("x", 4000)))
		}
	}
	for _, o := range halves {
		n.putLocal(ctx, o.Target, "_local/stray", doc.Rev{}, `{}`)
		n.putLocal(ctx, o.Target, "_local/astray", doc.Rev{}, `{}`)
	}
	clone()
	server := func(id string) bool { return isSystem([]byte(id)) }
	if got := n.localsOf(halves[0].Target, server); strings.Count(got, "target") != len(own) || strings.Contains(got, "source") {
		t.Errorf("what the server keeps:\n%s", got)
	}
	if got := n.localsOf(halves[1].Target, server); got != "" {
		t.Errorf("what the server keeps:\n%s", got)
	}
	n.check()
}

// Edits that come first to the source and then to the target while local documents are
// cloned leave both the same.
func TestCloneLocalDocsUnderEdits(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			var slow slowSync
			n := open(t, slow.fs(newFS()), Options{})
			defer n.stop()
			n.create(CreateOptions{})
			n.createHalves(CreateOptions{})
			o := halves[0]
			o.Range = ring.Full()
			ctx := context.Background()
			const docs = 4
			for d := range docs {
				for _, name := range []string{copyName, o.Target} {
					if rand.IntN(2) == 0 {
						n.putLocal(ctx, name, fmt.Sprintf("_local/%d", d), doc.Rev{}, fmt.Sprintf(`{"of":%q}`, name))
					}
				}
			}
			slow.delay.Store(int64(time.Millisecond))
			var all sync.WaitGroup
			for d := range docs {
				all.Go(func() { n.editBoth(fmt.Sprintf("_local/%d", d), o.Target) })
			}
			all.Go(func() {
				pass(time.Duration(rand.IntN(5000)) * time.Microsecond)
				if err := n.Clones.LocalDocs(ctx, o); err != nil {
					t.Error(err)
				}
			})
			all.Wait()
			every := func(string) bool { return true }
			if got, want := n.localsOf(o.Target, every), n.localsOf(copyName, every); got != want {
				t.Fatalf("%s\nwant\n%s", got, want)
			}
		})
	}
}

// editBoth edits a local document now and then, first in the source and then in the
// target; sometimes never.
func (n *node) editBoth(id, target string) {
	for i := range rand.IntN(4) {
		e := Edit{ID: id, Body: fmt.Appendf(nil, `{"i":%d}`, i), Parent: doc.Rev{ID: fmt.Sprint(i)}, Deleted: rand.IntN(2) == 0}
		for _, name := range []string{copyName, target} {
			pass(time.Duration(rand.IntN(2500)) * time.Microsecond)
			if _, err := n.Decide(context.Background(), DecideRequest{Copy: name, NewEdits: true, Edits: []Edit{e}}); err != nil {
				n.t.Error(err)
			}
		}
	}
}

// What comes between the comparison and the swap: a deletion that leaves the target as
// it was, so that the swap undoes it, has the document looked at again; and an edit
// that has come to the target is not written over.
func TestCloneLocalDocsBetween(t *testing.T) {
	n := start(t, Options{})
	n.createHalves(CreateOptions{})
	ctx := context.Background()
	o := halves[0]
	c := localsClone{states: n.states, ctx: ctx, o: &o}
	n.acquire(t, copyName, func(source *storage.Store) {
		n.acquire(t, o.Target, func(target *storage.Store) {
			c.source, c.target = source, target
			for _, id := range []string{"_local/gone", "_local/new", "_local/late"} {
				n.putLocal(ctx, copyName, id, doc.Rev{}, `{"v":1}`)
			}
			swaps, left, err := c.differing([]string{"_local/gone", "_local/new", "_local/late"})
			if err != nil || len(swaps) != 3 || len(left) != 0 {
				t.Fatal(swaps, left, err)
			}
			if _, err := n.LocalDocs.Delete(ctx, copyName, "_local/gone", doc.Rev{}); err != nil {
				t.Fatal(err)
			}
			n.putLocal(ctx, copyName, "_local/new", doc.Rev{}, `{"v":2}`)
			n.putLocal(ctx, o.Target, "_local/new", doc.Rev{}, `{"v":2}`)
			left, err = c.exchange(swaps)
			if err != nil || fmt.Sprint(left) != "[_local/gone _local/new]" {
				t.Fatal(left, err)
			}
			if d, err := n.LocalDocs.Get(ctx, o.Target, "_local/new"); err != nil || string(d.Body) != `{"v":2}` {
				t.Fatalf("%+v %v", d, err)
			}
			for len(left) > 0 {
				if left, err = c.clone(left); err != nil {
					t.Fatal(err)
				}
			}
			all := func(string) bool { return true }
			if got, want := n.localsOf(o.Target, all), n.localsOf(copyName, all); got != want {
				t.Fatalf("%s\nwant\n%s", got, want)
			}
		})
	})
}
