package cluster

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/attachment"
	"divan/cluster/fanout"
	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

var (
	node2 = nodeName(2)
	node3 = nodeName(3)
)

// ordered returns a handle on a database whose copies are in that order, which
// says who decides edits.
func (d *DB) ordered(nodes ...string) *DB {
	m := *d.meta
	m.Shards = slices.Clone(m.Shards)
	for i := range m.Shards {
		m.Shards[i].Copies = ordered(m.Shards[i], nodes)
	}
	return newDB(d.handles.c, &m)
}

// ordered returns the copies of a range on some nodes, in that order.
func ordered(s ring.Shard, nodes []string) []ring.Copy {
	var out []ring.Copy
	for _, n := range nodes {
		if c, ok := s.CopyOn(n); ok {
			out = append(out, c)
		}
	}
	return out
}

// bubble runs a test of a world of three nodes in a bubble.
func bubble(t *testing.T, f func(t *testing.T, w *world, d *DB)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true})
		f(t, w, w.create("db", CreateOptions{N: 3, Q: 1}))
	})
}

func TestWriteWithTrouble(t *testing.T) {
	for _, tc := range []struct {
		name     string
		trouble  trouble
		node     string // the copies are n2, n1, n3: n2 decides
		w        int
		accepted bool
		within   time.Duration
		missed   string
	}{
		{name: "none"},
		{name: "the first is away", trouble: away, node: node2, missed: node2},
		{name: "the first fails", trouble: failing, node: node2, missed: node2},
		{name: "the first is silent", trouble: silent, node: node2, within: fanout.WritePatience, missed: node2},
		{name: "the first loses its answers", trouble: deaf, node: node2, within: fanout.WritePatience, missed: node2},
		{name: "the first is slow", trouble: slow, node: node2, within: fanout.WritePatience},
		{name: "the first is silent, all are wanted", trouble: silent, node: node2, w: 3, accepted: true, within: time.Minute, missed: node2},
		{name: "another one is silent", trouble: silent, node: node3, missed: node3},
		{name: "another one is away", trouble: away, node: node3, missed: node3},
		{name: "another one is away, all are wanted", trouble: away, node: node3, w: 3, accepted: true, missed: node3},
		{name: "another one loses its answers, all are wanted", trouble: deaf, node: node3, w: 3, accepted: true, within: time.Minute, missed: node3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				d = d.ordered(node2, node1, node3)
				first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
				w.settleWrites()
				w.fleet.misses()
				if tc.node != "" {
					w.trouble(tc.trouble, tc.node)
				}
				begun := time.Now()
				r := update(t, d, UpdateOptions{NewEdits: true, W: tc.w},
					shard.Edit{ID: "a", Parent: first, Body: []byte(`{"n":2}`)}, shard.Edit{ID: "b", Body: []byte(`{}`)})
				took := time.Since(begun)
				if took > tc.within {
					t.Errorf("took %s", took)
				}
				for i := range r {
					if r[i].Err != nil || r[i].Accepted != tc.accepted {
						t.Errorf("%+v", r[i])
					}
				}
				w.settleWrites()
				if got := strings.Join(w.fleet.misses(), " "); got != tc.missed {
					t.Errorf("noted for repair: %q", got)
				}
				if tc.node != "" {
					w.fleet.set(tc.node, fine)
				}
				for node, has := range w.everywhere(t, d, "a") {
					lost := node == tc.missed && tc.trouble != deaf
					if want := fmt.Sprintf(`%s {"n":2} 2`, r[0].Rev); has != want && !lost {
						t.Errorf("%s has %s", node, has)
					}
				}
				if got, err := d.Open(t.Context(), OpenOptions{ID: "a", Conflicts: true, R: 3}); err != nil || got.Rev != r[0].Rev || len(got.Conflicts) > 0 {
					t.Errorf("%+v, %v", got, err)
				}
			})
		})
	}
}

// TestRefusalInDoubt: a conflict is told only when no copy may have the edit.
func TestRefusalInDoubt(t *testing.T) {
	for _, tc := range []struct {
		name    string
		trouble trouble
		want    fault.Kind
		within  time.Duration
	}{
		{name: "none", want: fault.Conflict},
		{name: "away", trouble: away, want: fault.Conflict},
		{name: "slow", trouble: slow, want: fault.Conflict, within: 2*slowness + fanout.WritePatience},
		{name: "silent", trouble: silent, want: fault.Timeout, within: time.Minute},
		{name: "deaf", trouble: deaf, want: fault.Timeout, within: time.Minute},
		{name: "failing", trouble: failing, want: fault.Unavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				d = d.ordered(node2, node1, node3)
				first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
				put(t, d, "a", first, `{"n":2}`)
				w.settleWrites()
				w.trouble(tc.trouble, node2)
				begun := time.Now()
				_, err := d.Update(t.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{
					{ID: "a", Parent: first, Body: []byte(`{"n":3}`)},
				})
				if err == nil {
					r, _ := d.Update(t.Context(), UpdateOptions{NewEdits: true}, []shard.Edit{{ID: "a", Parent: first, Body: []byte(`{"n":3}`)}})
					err = r[0].Err
					begun = begun.Add(time.Since(begun) / 2)
				}
				if !fault.Is(err, tc.want) {
					t.Errorf("%v", err)
				}
				if took := time.Since(begun); took > tc.within {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// TestStaleFirstCopy: a copy that was away refuses nothing that the others
// would take.
func TestStaleFirstCopy(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node2, node1, node3)
		a1 := put(t, d, "a", doc.Rev{}, `{"n":1}`)
		b1 := put(t, d, "b", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up := w.down(node2)
		a2 := put(t, d, "a", a1, `{"n":2}`)
		r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "b", Parent: b1, Deleted: true, Body: []byte("{}")})
		if r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		c1 := put(t, d, "c", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up()
		r = update(t, d, UpdateOptions{NewEdits: true, W: 3},
			shard.Edit{ID: "a", Parent: a2, Body: []byte(`{"n":3}`)},
			shard.Edit{ID: "b", Body: []byte(`{"n":3}`)},
			shard.Edit{ID: "c", Parent: c1, Body: []byte(`{"n":3}`)},
			shard.Edit{ID: "a", Parent: a1, Body: []byte(`{"n":4}`)},
		)
		for i := range 3 {
			if r[i].Err != nil || r[i].Accepted || r[i].Rev.Pos != []uint64{3, 3, 2}[i] {
				t.Errorf("%d: %+v", i, r[i])
			}
		}
		w.settleWrites()
		for i, id := range []string{"a", "b", "c"} {
			for node, has := range w.everywhere(t, d, id) {
				if want := r[i].Rev.String() + ` {"n":3}`; !strings.HasPrefix(has, want) {
					t.Errorf("%s has %s of %s", node, has, id)
				}
			}
		}
	})
}

// TestStaleFirstCopyOfAll: a copy that was away refuses all edits of a request,
// some because it does not know what they name and some because it does not
// know of a deletion; each gets its own answer when they are decided again.
func TestStaleFirstCopyOfAll(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node2, node1, node3)
		b1 := put(t, d, "b", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up := w.down(node2)
		r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "b", Parent: b1, Deleted: true, Body: []byte("{}")})
		if r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
		c1 := put(t, d, "c", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up()
		r = update(t, d, UpdateOptions{NewEdits: true, W: 3},
			shard.Edit{ID: "b", Body: []byte(`{"n":3}`)},
			shard.Edit{ID: "c", Parent: c1, Body: []byte(`{"n":3}`)},
		)
		w.settleWrites()
		for i, id := range []string{"b", "c"} {
			if r[i].Err != nil || r[i].Accepted || r[i].Rev.Pos != []uint64{3, 2}[i] {
				t.Errorf("%s: %+v", id, r[i])
			}
			for node, has := range w.everywhere(t, d, id) {
				if want := r[i].Rev.String() + ` {"n":3}`; !strings.HasPrefix(has, want) {
					t.Errorf("%s has %s of %s", node, has, id)
				}
			}
		}
	})
}

// TestOrdinaryConflictIsCheap: a conflict with what the deciding copy knows is no reason to ask
// another copy.
func TestOrdinaryConflictIsCheap(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node1, node2, node3)
		first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
		put(t, d, "a", first, `{"n":2}`)
		w.settleWrites()
		before := w.fleet.links[node2].calls.Load()
		r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte(`{"n":3}`)})
		if !fault.Is(r[0].Err, fault.Conflict) || w.fleet.links[node2].calls.Load() != before {
			t.Fatalf("%v, %d calls", r[0].Err, w.fleet.links[node2].calls.Load()-before)
		}
	})
}

// TestStaleRefusalOnSlowNodes: the copy of this node has not heard of what the others, which
// answer late, were given. A client whose edits belong there is not told of a conflict; one
// whose edit is one is told although a node says nothing.
func TestStaleRefusalOnSlowNodes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node1, node2, node3)
		behind := d.without(node1)
		old := put(t, d, "old", doc.Rev{}, `{"n":1}`)
		gone := put(t, d, "gone", doc.Rev{}, `{"n":1}`)
		put(t, d, "here", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		newer := put(t, behind, "old", old, `{"n":2}`)
		update(t, behind, UpdateOptions{NewEdits: true}, shard.Edit{ID: "gone", Parent: gone, Deleted: true, Body: []byte("{}")})
		w.settleWrites()
		w.trouble(slow, node2, node3)
		for _, e := range []shard.Edit{{ID: "old", Parent: newer, Body: []byte(`{"n":3}`)}, {ID: "gone", Body: []byte(`{"n":2}`)}} {
			if r := update(t, d, UpdateOptions{NewEdits: true}, e); r[0].Err != nil {
				t.Errorf("%s: %v", e.ID, r[0].Err)
			}
		}
		w.trouble(silent, node3)
		begun := time.Now()
		r := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "here", Body: []byte(`{"n":2}`)})
		if took := time.Since(begun); !fault.Is(r[0].Err, fault.Conflict) || took > 3*slowness {
			t.Errorf("%v after %v", r[0].Err, took)
		}
		w.trouble(silent, node2)
		begun = time.Now()
		r = update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "here", Body: []byte(`{"n":2}`)})
		if took := time.Since(begun); !fault.Is(r[0].Err, fault.Conflict) || took > fanout.MostPatience+slowness {
			t.Errorf("with none that answers: %v after %v", r[0].Err, took)
		}
	})
}

// TestStrictRead: one copy of three is enough for a read, and not for a strict one, whether it has the
// document, a tombstone or nothing.
func TestStrictRead(t *testing.T) {
	for _, tr := range []trouble{away, failing, silent} {
		bubble(t, func(t *testing.T, w *world, d *DB) {
			t.Helper()
			rev := put(t, d, "gone", doc.Rev{}, `{}`)
			put(t, d, "here", doc.Rev{}, `{}`)
			w.settleWrites()
			update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "gone", Parent: rev, Deleted: true, Body: []byte("{}")})
			w.settleWrites()
			for id, want := range map[string]fault.Kind{"here": 0, "gone": fault.Deleted, "none": fault.NotFound} {
				for _, strict := range []bool{false, true} {
					for nodes, within := range map[string]bool{"": true, node3: true, node2 + " " + node3: false} {
						up := w.trouble(tr, strings.Fields(nodes)...)
						kind := want
						if strict && !within {
							kind = fault.Unavailable
						}
						_, err := d.Open(t.Context(), OpenOptions{ID: id, Strict: strict})
						if kind == 0 && err != nil || kind != 0 && !fault.Is(err, kind) {
							t.Errorf("trouble %v of %q, strict: %t, %s: %v", tr, nodes, strict, id, err)
						}
						up()
						w.settleWrites()
					}
				}
			}
		})
	}
}

// TestReadWithTrouble: the copy of this node has an older revision, or none,
// or another branch, and one other copy is in trouble.
func TestReadWithTrouble(t *testing.T) {
	for _, tr := range []trouble{fine, away, failing, silent, deaf, slow} {
		t.Run(fmt.Sprint(tr), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				behind := d.without(node1)
				old := put(t, d, "old", doc.Rev{}, `{"n":1}`)
				gone := put(t, d, "gone", doc.Rev{}, `{"n":1}`)
				w.settleWrites()
				newer := put(t, behind, "old", old, `{"n":2}`)
				fresh := put(t, behind, "fresh", doc.Rev{}, `{"n":1}`)
				update(t, behind, UpdateOptions{NewEdits: true}, shard.Edit{ID: "gone", Parent: gone, Deleted: true, Body: []byte("{}")})
				w.settleWrites()
				w.trouble(tr, node2)
				begun := time.Now()
				for id, want := range map[string]doc.Rev{"old": newer, "fresh": fresh} {
					got, err := d.Open(t.Context(), OpenOptions{ID: id})
					if err != nil || got.Rev != want || len(got.Body) == 0 {
						t.Fatalf("%s: %+v, %v", id, got, err)
					}
					got, err = d.Open(t.Context(), OpenOptions{ID: id, Rev: want})
					if err != nil || got.Rev != want {
						t.Fatalf("%s named: %+v, %v", id, got, err)
					}
					revs, err := d.OpenRevs(t.Context(), OpenRevsOptions{ID: id, All: true})
					if err != nil || len(revs) != 1 || revs[0].Rev != want || revs[0].Doc == nil || len(revs[0].Doc.Body) == 0 {
						t.Fatalf("%s leaves: %+v, %v", id, revs, err)
					}
				}
				if _, err := d.Open(t.Context(), OpenOptions{ID: "gone"}); fault.Reason(err) != "deleted" {
					t.Fatalf("deleted elsewhere: %v", err)
				}
				if _, err := d.Open(t.Context(), OpenOptions{ID: "nothing"}); fault.Reason(err) != "missing" {
					t.Fatalf("missing: %v", err)
				}
				if took := time.Since(begun); took > 4*time.Second {
					t.Fatalf("took %s", took)
				}
				w.settleWrites()
				w.trouble(fine, node2)
				if has := w.everywhere(t, d, "old")[node1]; !strings.HasPrefix(has, newer.String()) {
					t.Fatalf("not repaired: %s", has)
				}
			})
		})
	}
}

func TestReadOfOneAsksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		put(t, d, "a", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		before := w.fleet.links[node2].calls.Load() + w.fleet.links[node3].calls.Load()
		if _, err := d.Open(t.Context(), OpenOptions{ID: "a", R: 1}); err != nil {
			t.Fatal(err)
		}
		if after := w.fleet.links[node2].calls.Load() + w.fleet.links[node3].calls.Load(); after != before {
			t.Fatalf("%d calls", after-before)
		}
	})
}

// TestDivergedCopies: branches that were made apart become conflicts of one
// document, everywhere.
func TestDivergedCopies(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		first := put(t, d, "a", doc.Rev{}, `{"n":1}`)
		w.settleWrites()
		up := w.down(node2, node3)
		here := update(t, d, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Parent: first, Body: []byte(`{"n":2}`)})[0].Rev
		up()
		w.settleWrites()
		there := put(t, d.without(node1), "a", first, `{"n":3}`)
		w.settleWrites()
		winner, loser := here, there
		if there.Compare(here) > 0 {
			winner, loser = there, here
		}
		got, err := d.Open(t.Context(), OpenOptions{ID: "a", Conflicts: true})
		if err != nil || got.Rev != winner || len(got.Conflicts) != 1 || got.Conflicts[0] != loser {
			t.Fatalf("%+v, %v", got, err)
		}
		w.settleWrites()
		for range 3 { // each read meets one other copy
			revs, err := d.OpenRevs(t.Context(), OpenRevsOptions{ID: "a", All: true, R: 3})
			if err != nil || len(revs) != 2 || revs[0].Rev != winner || revs[1].Rev != loser {
				t.Fatalf("%+v, %v", revs, err)
			}
			w.settleWrites()
		}
		for node, has := range w.everywhere(t, d, "a") {
			if !strings.HasPrefix(has, winner.String()) {
				t.Errorf("%s has %s", node, has)
			}
		}
	})
}

// TestMend: attachments and purges go along.
func TestMend(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		behind := d.without(node1)
		small, large := noise(1000), noise(1<<20)
		var atts []shard.EditAttachment
		for i, content := range [][]byte{small, large, nil} {
			a, err := behind.Upload(t.Context(), "a", attachment.Options{Name: fmt.Sprint(i), ContentType: "image/png", Length: -1}, bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			atts = append(atts, a)
		}
		r := update(t, behind, UpdateOptions{NewEdits: true}, shard.Edit{ID: "a", Body: []byte("{}"), Atts: atts})[0]
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		purge := put(t, d, "p", doc.Rev{}, `{}`)
		w.settleWrites()
		if got, err := behind.Purge(t.Context(), 0, []shard.PurgeItem{{ID: "p", Revs: []doc.Rev{purge}}}); err != nil || len(got[0].Purged) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		w.settleWrites()
		for _, id := range []string{"a", "p"} {
			if _, err := d.Open(t.Context(), OpenOptions{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		w.settleWrites()
		for node, has := range w.everywhere(t, d, "p") {
			if has != "missing" {
				t.Errorf("purged, but %s has %s", node, has)
			}
		}
		w.down(node2, node3)
		got, err := d.Open(t.Context(), OpenOptions{ID: "a"})
		if err != nil || got.Rev != r.Rev || len(got.Atts) != 3 {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, content := range [][]byte{small, large} {
			if back := contentOf(t, d, "a", got.Atts[i]); !bytes.Equal(back, content) {
				t.Errorf("attachment %d: %d bytes", i, len(back))
			}
		}
	})
}

// TestOwnCopyIsWaitedFor: what a client has written through a node is in the
// copy that the node's listings read.
func TestOwnCopyIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		d = d.ordered(node2, node3, node1)
		for i := range 100 {
			id := fmt.Sprintf("doc%03d", i)
			rev := put(t, d, id, doc.Rev{}, `{}`)
			if has := w.everywhere(t, d, id)[node1]; !strings.HasPrefix(has, rev.String()) {
				t.Fatalf("%s: %s", id, has)
			}
			if i%10 == 0 {
				if out, err := d.Purge(t.Context(), 0, []shard.PurgeItem{{ID: id, Revs: []doc.Rev{rev}}}); err != nil || out[0].Err != nil {
					t.Fatal(err)
				}
				if has := w.everywhere(t, d, id)[node1]; has != "missing" {
					t.Fatalf("%s: %s", id, has)
				}
			}
		}
	})
}
