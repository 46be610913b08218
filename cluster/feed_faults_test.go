package cluster

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/fanout"
	"divan/cluster/repair"
	"divan/cluster/replica"
	"divan/cluster/sequence"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// several writes n documents and waits until all copies have them.
func several(t *testing.T, w *world, d *DB, from, n int) {
	t.Helper()
	for i := from; i < from+n; i += 500 {
		var ids []string
		for k := i; k < min(i+500, from+n); k++ {
			ids = append(ids, fmt.Sprintf("doc%05d", k))
		}
		bulk(t, d, ids...)
	}
	w.settleWrites()
}

func distinctIDs(rows []seen) int {
	ids := map[string]bool{}
	for _, r := range rows {
		ids[r.id] = true
	}
	return len(ids)
}

// TestFeedKeepsToItsCopy: a client that comes to another node goes on exactly,
// as long as the copy that it has read can be reached.
func TestFeedKeepsToItsCopy(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		several(t, w, d, 0, 10)
		far := d.without(node1)
		_, last, _ := changes(t, far, ChangesQuery{Limit: NoLimit})
		several(t, w, d, 10, 3)
		if rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, last)}); len(rows) != 3 {
			t.Fatalf("%v", rows)
		}
		its := far.routing.Routes[0].Near[0].Node
		well := w.trouble(slow, its)
		if rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, last)}); len(rows) != 3 {
			t.Fatalf("from a slow copy: %v", rows)
		}
		well()
		well = w.trouble(silent, far.routing.Routes[0].Near[1].Node)
		begun := time.Now()
		if rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, last)}); len(rows) != 3 || time.Since(begun) > fanout.ReadPatience {
			t.Fatalf("while another copy is silent: %v in %v", rows, time.Since(begun))
		}
		well()
		w.trouble(silent, its)
		if rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, last)}); distinctIDs(rows) != 13 {
			t.Fatalf("without it: %v", rows)
		}
	})
}

// TestFeedGoesOnFromCheckpoint: how far back a feed goes in another copy is
// what the two copies are known to share.
func TestFeedGoesOnFromCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		several(t, w, d, 0, 10)
		away := d.without(node1)
		_, last, _ := changes(t, away, ChangesQuery{Limit: NoLimit})
		first := d.routing.Routes[0].Near
		here, err := replica.Position.On(t.Context(), replica.Of(w.local, first[0]), first[0].Name)
		if err != nil {
			t.Fatal(err)
		}
		reader, err := away.covered()
		if err != nil {
			t.Fatal(err)
		}
		there, err := replica.Position.On(t.Context(), w.replica(reader[0]), reader[0].Name)
		if err != nil {
			t.Fatal(err)
		}
		several(t, w, d, 10, 5)
		body, err := json.Marshal(map[string]any{
			"source_uuid": hex.EncodeToString(here.UUID[:]), "target_uuid": hex.EncodeToString(there.UUID[:]),
			"history": [][2]uint64{{12, 12}, {7, 8}, {2, 3}},
		})
		if err != nil {
			t.Fatal(err)
		}
		id := repair.CheckpointID(repair.PrefixOf(here.UUID), repair.PrefixOf(there.UUID))
		if _, err := w.locals[node1].LocalDocs.Put(t.Context(), first[0].Name, id, doc.Rev{}, body); err != nil {
			t.Fatal(err)
		}
		w.down(reader[0].Node)
		rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, last)})
		if len(rows) != 8 || distinctIDs(rows) != 8 { // those behind 7
			t.Fatalf("%d rows", len(rows))
		}
	})
}

// TestFeedSurvivesItsCopy reads from copies of other nodes that break off, at
// the opening, at the first row and later.
func TestFeedSurvivesItsCopy(t *testing.T) {
	const n = 1500
	for _, tr := range []trouble{away, failing, silent, deaf, slow, broken} {
		for _, batches := range []int{0, 2} {
			t.Run(fmt.Sprint(tr, " ", batches), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world, d *DB) {
					t.Helper()
					several(t, w, d, 0, n)
					d = d.without(node1)
					w.fleet.links[node2].batches = batches
					w.fleet.links[node3].batches = 1 << 30
					first := d.routing.Routes[0].Near[0].Node
					f, err := d.Changes(t.Context(), ChangesQuery{Limit: NoLimit})
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					if batches > 0 {
						w.trouble(tr, first)
					}
					w.fleet.links[first].batches = batches
					ids := map[string]bool{}
					for i := 0; f.Next(); i++ {
						ids[f.Row().ID] = true
						if i == 200 {
							w.trouble(tr, first)
						}
					}
					if f.Err() != nil || len(ids) != n {
						t.Fatalf("%d documents, %v", len(ids), f.Err())
					}
					// A new feed goes on from what this one says.
					w.trouble(fine, node2, node3)
					if rows, _, _ := changes(t, d, ChangesQuery{Limit: NoLimit, Since: since(t, f.LastSeq())}); len(rows) > 0 {
						t.Fatalf("%d rows again", len(rows))
					}
				})
			})
		}
	}
}

// TestListingSurvivesItsCopy is the same for listings, which repeat nothing.
func TestListingSurvivesItsCopy(t *testing.T) {
	const n = 1500
	for _, tr := range []trouble{away, failing, silent, deaf, slow, broken} {
		t.Run(fmt.Sprint(tr), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				several(t, w, d, 0, n)
				d = d.without(node1)
				first := d.routing.Routes[0].Near[0].Node
				w.fleet.links[first].batches = 2
				for _, q := range []DocsQuery{
					{Limit: NoLimit},
					{Limit: NoLimit, Descending: true},
					{Limit: 20, StartKey: ptr("doc01000")},
					{HasKeys: true, Keys: []string{"doc00001", "doc00002", "none"}},
					{Namespace: DesignDocs, Limit: NoLimit},
				} {
					for _, late := range []bool{false, true} {
						w.trouble(fine, first)
						if !late {
							w.trouble(tr, first)
						}
						got := listed(t, d, q, func(n int) {
							if n == 200 && late {
								w.trouble(tr, first)
							}
						})
						w.trouble(fine, first)
						if want := listed(t, d, q, func(int) {}); !slices.Equal(got, want) {
							t.Fatalf("%+v late %v: %d rows, want %d", q, late, len(got), len(want))
						}
					}
				}
			})
		})
	}
}

// listed returns the ids of a listing; each is called with how many there are.
func listed(t *testing.T, d *DB, q DocsQuery, each func(n int)) []string {
	t.Helper()
	rows, err := d.AllDocs(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		got = append(got, rows.Row().ID)
		each(len(got))
	}
	if rows.Err() != nil {
		t.Fatal(rows.Err())
	}
	return got
}

// TestContinuousFeedChangesCopies: the node whose copy is read goes away while
// the feed waits, comes back, and so on; the feed never ends and misses
// nothing.
func TestContinuousFeedChangesCopies(t *testing.T) {
	for _, tr := range []trouble{away, failing, silent} {
		t.Run(fmt.Sprint(tr), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				remote := d.without(node1)
				f, err := remote.Changes(t.Context(), ChangesQuery{Limit: NoLimit, Since: sequence.Now()})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				got := map[string]bool{}
				for round := range 6 {
					node := []string{node2, node3}[round%2]
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					if err := f.Wait(ctx); ctx.Err() == nil {
						t.Fatalf("round %d: %v", round, err)
					}
					cancel()
					up := w.trouble(tr, node)
					synctest.Wait()
					id := fmt.Sprintf("doc%d", round)
					r, err := d.Update(t.Context(), UpdateOptions{NewEdits: true, W: 2}, []shard.Edit{{ID: id, Body: []byte("{}")}})
					if err != nil || r[0].Err != nil {
						t.Fatal(err, r)
					}
					for !got[id] {
						for _, row := range drain(t, f) {
							got[row.id] = true
						}
						if !got[id] {
							if err := f.Wait(t.Context()); err != nil {
								t.Fatalf("round %d: %v", round, err)
							}
						}
					}
					w.settleWrites()
					up()
					if err := remote.alignDoc(t.Context(), id, d.routing.Routes[0].Copies); err != nil {
						t.Fatal(err)
					}
					for _, row := range drain(t, f) {
						got[row.id] = true
					}
				}
				if len(got) != 6 {
					t.Fatalf("%v", maps.Keys(got))
				}
				w.down(node2, node3)
				if err := f.Wait(t.Context()); !fault.Is(err, fault.Unavailable) {
					t.Fatalf("without any copy: %v", err)
				}
			})
		})
	}
}

// TestFeedWaitsForItsCopy: waits that are shorter than what a copy takes to
// answer, as those of a feed with frequent heartbeats, end in time, all but the
// one that opens a copy, and still the feed gets its answer, or gives the copy up.
func TestFeedWaitsForItsCopy(t *testing.T) {
	for _, tr := range []trouble{slow, silent} {
		t.Run(fmt.Sprint(tr), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				remote := d.without(node1)
				f, err := remote.Changes(t.Context(), ChangesQuery{Limit: NoLimit, Since: sequence.Now()})
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				several(t, w, d, 0, 1)
				w.trouble(tr, remote.routing.Routes[0].Near[0].Node)
				late := 0
				for begun := time.Now(); ; {
					ctx, cancel := context.WithTimeout(t.Context(), slowness/10)
					asked := time.Now()
					err := f.Wait(ctx)
					if time.Since(asked) > slowness/10 {
						late++
					}
					cancel()
					if err == nil {
						break
					}
					if f.Err() != nil || !errors.Is(err, context.DeadlineExceeded) || late > 1 || time.Since(begun) > 2*fanout.NudgeLimit {
						t.Fatalf("%v after %v, %d waits were late", err, time.Since(begun), late)
					}
				}
				if rows := drain(t, f); len(rows) != 1 {
					t.Fatalf("%v", rows)
				}
				ctx, cancel := context.WithTimeout(t.Context(), slowness/10)
				defer cancel()
				if err := f.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
			})
		})
	}
}
