package cluster

import (
	"testing"

	"divan/shard"
	"divan/shard/ring"
	"divan/storage/doc"
	"divan/storage/fault"
)

// TestEarlierCopyComesBack: a directory that an earlier copy has left on this node under
// the same name never answers, is set aside, and the copy of the map is filled from the
// others.
func TestEarlierCopyComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world, d *DB) {
		t.Helper()
		put(t, d, "now", doc.Rev{}, `{}`)
		w.settleWrites()
		name, own := d.routing.Owner("now").Copies[0].Name, w.locals[node1]
		if err := own.Copies.Drop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		earlier := shard.CreateOptions{ID: w.idOf(name, node1) - 1}
		if err := own.Copies.Create(t.Context(), name, earlier); err != nil {
			t.Fatal(err)
		}
		stale := []shard.Edit{{ID: "then", Body: []byte(`{}`)}}
		if _, err := own.Decide(t.Context(), shard.DecideRequest{Copy: name, NewEdits: true, Edits: stale}); err != nil {
			t.Fatal(err)
		}

		look := func(when string) {
			t.Helper()
			if _, err := d.Open(t.Context(), OpenOptions{ID: "now", R: 1}); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if _, err := d.Open(t.Context(), OpenOptions{ID: "then", R: 1}); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: the directory of an earlier copy answers: %v", when, err)
			}
			if ids, _, _ := list(t, d, DocsQuery{Limit: NoLimit}); ids != "now" {
				t.Errorf("%s: listed %q", when, ids)
			}
		}
		look("before it was noticed")
		put(t, d, "more", doc.Rev{}, `{}`)
		w.settleWrites()
		if got, err := own.Open(t.Context(), shard.OpenRequest{Copy: name, ID: "more"}); err == nil {
			t.Errorf("it has taken a write: %+v", got)
		}
		remove(t, d, "more", put(t, d, "more2", doc.Rev{}, `{}`))
		w.settleWrites()

		w.join()
		if id, err := own.Copies.ID(name); err != nil || id != w.idOf(name, node1) {
			t.Errorf("the directory is that of copy %d, %v", id, err)
		}
		if _, one, _ := w.meta.CopyIn(name, node1); one.State != ring.StateJoining {
			t.Error("an empty copy is taken for a full one")
		}
	})
}
