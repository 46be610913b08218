package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/config"
	"divan/cluster/fanout"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestLifeWithTrouble creates, describes, compacts, synchronises and deletes a
// database while one node is in trouble: nothing fails, and nothing takes
// longer than it must.
func TestLifeWithTrouble(t *testing.T) {
	for _, tr := range []trouble{away, failing, silent, deaf, slow} {
		t.Run(fmt.Sprint(tr), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{nodes: 3, still: true})
				w.trouble(tr, node2)
				step := func(name string, within time.Duration, f func() error) {
					t.Helper()
					begun := time.Now()
					if err := f(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					if took := time.Since(begun); took > within {
						t.Errorf("%s took %s", name, took)
					}
				}
				ctx := t.Context()
				var d *DB
				step("create", 0, func() error { return w.CreateDB(ctx, "db", CreateOptions{N: 3, Q: 4}) })
				d = w.open("db")
				step("write", fanout.WritePatience+slowness, func() error {
					r, err := d.Update(ctx, UpdateOptions{NewEdits: true}, []shard.Edit{{ID: "a", Body: []byte("{}")}, {ID: "b", Body: []byte("{}")}})
					if err == nil && r[0].Err != nil {
						return r[0].Err
					}
					return err
				})
				for name, handle := range map[string]*DB{"": d, " from elsewhere": d.without(node1)} {
					step("info"+name, time.Second, func() error { _, err := handle.Info(ctx); return err })
					step("commit"+name, time.Second, func() error { _, err := handle.EnsureFullCommit(ctx); return err })
					step("compact"+name, fanout.NudgeLimit, func() error { return handle.Compact(ctx) })
					step("purges"+name, time.Second, func() error { _, err := handle.PurgedInfos(ctx); return err })
					step("missing"+name, time.Second, func() error {
						_, err := handle.Missing(ctx, []shard.IDRevs{{ID: "a", Revs: []doc.Rev{{Pos: 1, ID: "x"}}}})
						return err
					})
					step("sync"+name, 0, func() error { return handle.SyncShards(ctx) })
				}
				step("purge", fanout.MostPatience, func() error { // the copy that is read is waited for
					out, err := d.Purge(ctx, 0, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{{Pos: 1, ID: "x"}}}})
					if err == nil && out[0].Accepted {
						return fault.New(fault.Internal, "only accepted")
					}
					return err
				})
				if got := w.fleet.synced; len(got) != 2 || len(got[0]) != 4 {
					t.Errorf("synchronised: %v", got)
				}
				step("delete", fanout.MostPatience, func() error { return w.DeleteDB(ctx, "db") })
				for _, node := range []string{node1, node3} {
					if names, err := w.locals[node].Copies.Names(); err != nil || len(names) > 0 {
						t.Errorf("%s still has %v, %v", node, names, err)
					}
				}
				w.settleWrites()
			})
		})
	}
}

// TestPurgeWithTrouble: w counts the copies that have done it.
func TestPurgeWithTrouble(t *testing.T) {
	for _, tc := range []struct {
		trouble  trouble
		w        int
		accepted bool
		within   time.Duration
	}{
		{trouble: silent},
		{trouble: silent, w: 3, accepted: true, within: time.Minute},
		{trouble: away, w: 3, accepted: true},
		{trouble: slow, w: 3, within: slowness},
	} {
		t.Run(fmt.Sprint(tc.trouble, " ", tc.w), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world, d *DB) {
				t.Helper()
				d = d.ordered(node1, node2, node3) // for a first copy that is silent see TestPurgeOnTheCopyThatIsRead
				rev := put(t, d, "a", doc.Rev{}, `{}`)
				w.settleWrites()
				w.trouble(tc.trouble, node3)
				begun := time.Now()
				out, err := d.Purge(t.Context(), tc.w, []shard.PurgeItem{{ID: "a", Revs: []doc.Rev{rev}}})
				if err != nil || out[0].Err != nil || out[0].Accepted != tc.accepted || len(out[0].Purged) != 1 {
					t.Fatalf("%+v, %v", out, err)
				}
				if took := time.Since(begun); took > tc.within {
					t.Fatalf("took %s", took)
				}
				w.settleWrites()
				if got := strings.Join(w.fleet.misses(), ""); (got == node3) != (tc.trouble != slow) {
					t.Fatalf("noted for repair: %q", got)
				}
			})
		})
	}
}

// TestLocalDocumentsOfCopies: the highest count of enough copies, and of different
// bodies with one count the one that most copies have.
func TestLocalDocumentsOfCopies(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		write := func(rev, body string) {
			t.Helper()
			if _, err := d.LocalPut(t.Context(), "_local/l", doc.Rev{ID: rev}, []byte(body)); err != nil {
				t.Fatal(err)
			}
			w.settleWrites()
		}
		read := func(want string) {
			t.Helper()
			got, err := d.LocalGet(t.Context(), "_local/l")
			if err != nil || string(got.Body) != want {
				t.Fatalf("%+v, %v, want %s", got, err, want)
			}
		}
		write("4", `{"n":1}`)
		up := w.down(node2)
		read(`{"n":1}`)
		write("5", `{"n":2}`)
		up()
		for _, node := range []string{"", node3} { // with n2 alone, n1 is the newer one
			up = w.down(strings.Fields(node)...)
			read(`{"n":2}`)
			up()
		}
		// This node has an older body under the same count.
		own := d.routing.Routes[0].Near[0]
		if _, err := w.locals[node1].LocalDocs.Put(t.Context(), own.Name, "_local/l", doc.Rev{ID: "5"}, []byte(`{"n":0}`)); err != nil {
			t.Fatal(err)
		}
		write2 := func(node string) {
			if _, err := w.locals[node].LocalDocs.Put(t.Context(), own.Name, "_local/l", doc.Rev{ID: "5"}, []byte(`{"n":2}`)); err != nil {
				t.Fatal(err)
			}
		}
		write2(node2)
		write2(node3)
		read(`{"n":2}`)
		if _, err := d.LocalDelete(t.Context(), "_local/l"); err != nil {
			t.Fatal(err)
		}
		w.settleWrites()
		if _, err := d.LocalGet(t.Context(), "_local/l"); fault.Reason(err) != "missing" {
			t.Fatal(err)
		}
		w.down(node2, node3)
		if ids, _, _ := list(t, d, DocsQuery{Namespace: LocalDocs, Limit: NoLimit}); ids != "" {
			t.Fatal(ids)
		}
	})
}

// TestOpenRevsManyAsksOnce: one message per copy, for any number of documents.
func TestOpenRevsManyAsksOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		several(t, w, d, 0, 50)
		links := []*link{w.fleet.links[node2], w.fleet.links[node3]}
		before := links[0].calls.Load() + links[1].calls.Load()
		var list []OpenRevsOptions
		for i := range 50 {
			list = append(list, OpenRevsOptions{ID: fmt.Sprintf("doc%05d", i), All: true})
		}
		list = append(list, OpenRevsOptions{ID: "none", All: true})
		got, errs := d.OpenRevsMany(t.Context(), list)
		for i := range list {
			if want := min(1, 50-i); errs[i] != nil || len(got[i]) != want {
				t.Fatalf("%d: %+v, %v", i, got[i], errs[i])
			}
		}
		if n := links[0].calls.Load() + links[1].calls.Load() - before; n != 1 {
			t.Fatalf("%d calls", n)
		}
		// A named revision that only the copy has that is not asked at first.
		rev := doc.Rev{Pos: 1, ID: "lonely"}
		far := d.routing.Routes[0].Near[2]
		_, err := w.locals[far.Node].Decide(t.Context(), shard.DecideRequest{
			Copy: far.Name, Edits: []shard.Edit{{ID: "lonely", Path: doc.Path{Start: 1, IDs: []string{"lonely"}}, Body: []byte("{}")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, latest := range []bool{false, true} {
			got, err := d.OpenRevs(t.Context(), OpenRevsOptions{ID: "lonely", Revs: []doc.Rev{rev, {Pos: 1, ID: "no"}}, Latest: latest})
			if err != nil || len(got) != 2 || got[0].Doc == nil || got[1].Doc != nil {
				t.Fatalf("%+v, %v", got, err)
			}
		}
	})
}

// TestCoverFollowsNodes: what is read changes as soon as a node comes or goes.
func TestCoverFollowsNodes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		far := d.without(node1)
		first, err := far.covered()
		if err != nil {
			t.Fatal(err)
		}
		up := w.down(first[0].Node)
		second, err := far.covered()
		if err != nil || second[0].Node == first[0].Node {
			t.Fatalf("%v, %v", second, err)
		}
		w.down(second[0].Node)
		if _, err := far.covered(); !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
		up()
		if third, err := far.covered(); err != nil || third[0] != first[0] {
			t.Fatalf("%v, %v", third, err)
		}
	})
}

// TestRequestEnds: the end of the request's context ends it, whichever call hangs.
func TestRequestEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		put(t, d, "a", doc.Rev{}, `{}`)
		w.settleWrites()
		far := d.without(node1)
		w.trouble(silent, node2, node3)
		for name, f := range map[string]func(ctx context.Context) error{
			"open":  func(ctx context.Context) error { _, err := far.Open(ctx, OpenOptions{ID: "a"}); return err },
			"rev":   func(ctx context.Context) error { _, err := far.Open(ctx, OpenOptions{ID: "a", R: 1}); return err },
			"list":  func(ctx context.Context) error { _, err := far.AllDocs(ctx, DocsQuery{Limit: NoLimit}); return err },
			"feed":  func(ctx context.Context) error { _, err := far.Changes(ctx, ChangesQuery{Limit: NoLimit}); return err },
			"info":  func(ctx context.Context) error { _, err := far.Info(ctx); return err },
			"local": func(ctx context.Context) error { _, err := far.LocalGet(ctx, "_local/l"); return err },
			"write": func(ctx context.Context) error {
				_, err := far.Update(ctx, UpdateOptions{NewEdits: true}, []shard.Edit{{ID: "a", Body: []byte("{}")}})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			begun := time.Now()
			err := f(ctx)
			cancel()
			if took := time.Since(begun); took > 3*time.Second || err == nil {
				t.Errorf("%s: %v after %s", name, err, took)
			}
		}
	})
}

// TestCloseDoesNotWaitForEver: a copy that never answers holds a stop up for some seconds, for any
// timeout of requests.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{nodes: 3, still: true, config: config.Values{"fabric": {"request_timeout": "infinity"}}})
		d := w.create("db", CreateOptions{N: 3, Q: 1})
		w.trouble(silent, node3)
		put(t, d, "a", doc.Rev{}, "{}")
		begun := time.Now()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != closePatience {
			t.Errorf("it took %v", took)
		}
	})
}
