package cluster

import (
	"fmt"
	"testing"
	"time"

	"divan/cluster/fanout"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestWrittenAgainAfterPurge: the same content gives the same revision, which
// all copies have purged; it comes back on all of them, with the usual quorum.
func TestWrittenAgainAfterPurge(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 1})
	rev := put(t, d, "a", doc.Rev{}, `{}`)
	w.settleWrites()
	got, err := d.Purge(t.Context(), 3, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{rev}}})
	if err != nil || got[0].Accepted || len(got[0].Purged) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	r := update(t, d, UpdateOptions{NewEdits: true, W: 3}, shard.Edit{ID: "a", Body: []byte("{}")}, shard.Edit{ID: "b", Body: []byte("{}")})
	for i := range r {
		if r[i].Err != nil || r[i].Accepted {
			t.Fatalf("%+v", r[i])
		}
	}
	for node, has := range w.everywhere(t, d, "a") {
		if want := fmt.Sprintf("%s {} 1", rev); has != want {
			t.Errorf("%s has %s, want %s", node, has, want)
		}
	}
}

// TestPurgeOnTheCopyThatIsRead: views and searches read the copy that decides edits, which has done a
// purge that was acknowledged unless it is very slow. That does not fail a purge that others have done.
func TestPurgeOnTheCopyThatIsRead(t *testing.T) {
	for _, tr := range []trouble{fine, slow, silent, away, failing} {
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			d = d.ordered(node2, node1, node3)
			rev := put(t, d, "a", doc.Rev{}, `{}`)
			w.settleWrites()
			up := w.trouble(tr, node2)
			began := time.Now()
			got, err := d.Purge(t.Context(), 0, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{rev}}})
			if err != nil || got[0].Err != nil || got[0].Accepted || len(got[0].Purged) != 1 {
				t.Errorf("trouble %v: %+v, %v", tr, got, err)
			}
			if took := time.Since(began); took > fanout.MostPatience {
				t.Errorf("trouble %v: it took %v", tr, took)
			}
			if has := w.everywhere(t, d, "a")[node2]; (tr == fine || tr == slow) && has != "missing" {
				t.Errorf("trouble %v: the copy that is read has %s", tr, has)
			}
			up()
			w.settleWrites()
		})
	}
}

// TestPurgeOnTheNextCopyThatIsRead: while the first copy is away or fails the second one is read.
func TestPurgeOnTheNextCopyThatIsRead(t *testing.T) {
	for _, tr := range []trouble{away, failing} {
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			d = d.ordered(node2, node3, node1)
			rev := put(t, d, "a", doc.Rev{}, `{}`)
			w.settleWrites()
			defer w.trouble(tr, node2)()
			defer w.trouble(slow, node3)()
			if got, err := d.Purge(t.Context(), 1, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{rev}}}); err != nil || got[0].Err != nil {
				t.Fatalf("trouble %v: %+v, %v", tr, got, err)
			}
			if has := w.everywhere(t, d, "a")[node3]; has != "missing" {
				t.Errorf("trouble %v: the copy that is read has %s", tr, has)
			}
			w.settleWrites()
		})
	}
}

// TestEditMeetsItsPurge: the other copies have done a purge that the deciding copy has not heard of
// when the edit reaches it. The edit is gone with the purge, so the client is not told that it was
// stored; sent again, it is stored.
func TestEditMeetsItsPurge(t *testing.T) {
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("db", CreateOptions{N: 3, Q: 1})
	first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
	w.settleWrites()
	up := w.down(nodeName(2), nodeName(3))
	second := put(t, d, "a", first, `{"n":2}`)
	w.settleWrites()
	up()
	copies := d.routing.Owner("a").Copies
	item := shard.PurgeItem{UUID: [16]byte{1}, ID: "a", Revs: []doc.Rev{second}}
	for _, c := range copies[1:] {
		if _, err := w.locals[c.Node].Purge(t.Context(), c.Name, []shard.PurgeItem{item}); err != nil {
			t.Fatal(err)
		}
	}
	path := doc.Path{Start: 2, IDs: []string{second.ID, first.ID}}
	d = d.ordered(copies[0].Node, copies[1].Node, copies[2].Node)
	e := shard.Edit{ID: "a", Path: path, Body: []byte(`{"n":2}`)}
	if r, err := d.Update(t.Context(), UpdateOptions{}, []shard.Edit{e}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("%+v, %v", r, err)
	}
	w.settleWrites()
	if err := d.alignDoc(t.Context(), "a", copies); err != nil {
		t.Fatal(err)
	}
	for node, has := range w.everywhere(t, d, "a") {
		if has != "missing" {
			t.Errorf("%s has %s", node, has)
		}
	}
	if r := update(t, d, UpdateOptions{W: 3}, e); r[0].Err != nil || r[0].Accepted {
		t.Fatalf("%+v", r[0])
	}
	for node, has := range w.everywhere(t, d, "a") {
		if want := fmt.Sprintf(`%s {"n":2} 2`, second); has != want {
			t.Errorf("%s has %s, want %s", node, has, want)
		}
	}
}

// TestLateDecision: a slow copy gets an edit that another copy has decided in
// its place and that has been purged since. It must not bring it back.
func TestLateDecision(t *testing.T) {
	for _, interactive := range []bool{true, false} {
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			d = d.ordered(node2, node1, node3)
			up := w.trouble(slow, node2)
			e := shard.Edit{ID: "a", Body: []byte("{}")}
			if !interactive {
				e.Path = doc.Path{Start: 1, IDs: []string{"x"}}
			}
			r := update(t, d, UpdateOptions{NewEdits: interactive}, e)
			if r[0].Err != nil || r[0].Accepted {
				t.Fatalf("%+v", r[0])
			}
			up()
			got, err := d.Purge(t.Context(), 3, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{r[0].Rev}}})
			if err != nil || got[0].Accepted || len(got[0].Purged) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			w.settleWrites()
			for node, has := range w.everywhere(t, d, "a") {
				if has != "missing" {
					t.Errorf("%s has %s", node, has)
				}
			}
		})
	}
}
