package cluster

import (
	"slices"
	"strings"
	"testing"

	"divan/shard"
	"divan/storage/fault"
)

// wantKept replaces a node, which must be refused with a text that holds all of
// parts.
func (w *world) wantKept(old, by string, parts ...string) {
	w.tb.Helper()
	err := w.ReplaceNode(w.tb.Context(), old, by, false)
	if !fault.Is(err, fault.Conflict) {
		w.tb.Fatalf("%s for %s: %v", by, old, err)
	}
	for _, part := range append(parts, `"force": true`) {
		if !strings.Contains(fault.Reason(err), part) {
			w.tb.Errorf("no %s in %q", part, fault.Reason(err))
		}
	}
	if _, member := w.meta.Node(old); !member {
		w.tb.Errorf("%s is gone", old)
	}
}

// replaceOnce replaces a node, which must be done.
func (w *world) replaceOnce(old, by string, force bool) {
	w.tb.Helper()
	if err := w.ReplaceNode(w.tb.Context(), old, by, force); err != nil {
		w.tb.Fatal(err)
	}
	if _, member := w.meta.Node(old); member {
		w.tb.Errorf("%s is still there", old)
	}
}

// TestReplaceOnlyCopy: a node that holds the only copy of something is replaced
// by force only.
func TestReplaceOnlyCopy(t *testing.T) {
	const old, by = "n3@127.0.0.1", "n2@127.0.0.1"
	w := start(t, setup{nodes: 3, still: true})
	w.create("safe", CreateOptions{N: 3, Q: 2})
	for _, name := range []string{"pond", "lake"} { // one range on each node
		w.create(name, CreateOptions{N: 1, Q: 3})
	}
	w.wantKept(old, by, old, `2 databases, the first is "lake"`)
	if err := w.DeleteDB(t.Context(), "lake"); err != nil {
		t.Fatal(err)
	}
	w.wantKept(old, by, `database "pond"`)
	w.replaceOnce(old, by, true)
}

// TestReplaceBesideIncompleteCopies: other copies count when they are known to
// be complete.
func TestReplaceBesideIncompleteCopies(t *testing.T) {
	const old, by = "n3@127.0.0.1", "n4@127.0.0.1"
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("pond", CreateOptions{N: 3, Q: 1})
	other, _ := w.meta.Node(node1)
	other.Name = by
	if err := w.meta.PutNode(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	name := d.Meta().CopiesOn(node1)[0]
	lose := func(node string) {
		if err := w.locals[node].Drop(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := w.locals[node].Create(t.Context(), name, shard.CreateOptions{ID: w.idOf(name, node), Rebuilding: true}); err != nil {
			t.Fatal(err)
		}
	}
	lose(node1)
	up := w.trouble(failing, node2)
	w.wantKept(old, by, `"pond"`, "no answer from "+node2)
	up()
	lose(node2)
	w.wantKept(old, by, `"pond"`)
	if err := w.locals[node2].Drop(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	w.wantKept(old, by, `"pond"`) // nor is it there
	if err := w.locals[node1].Rebuilt(name); err != nil {
		t.Fatal(err)
	}
	w.replaceOnce(old, by, false)
}

// TestReplaceOneAfterTheOther: the copy that a node has just got is not what
// another one can be given up for.
func TestReplaceOneAfterTheOther(t *testing.T) {
	w := start(t, setup{nodes: 4, still: true})
	if err := w.meta.SetDraining(t.Context(), node1, true); err != nil {
		t.Fatal(err)
	}
	d := w.create("pond", CreateOptions{N: 2, Q: 1})
	holders := d.Meta().Shards[0].Nodes()
	rest := slices.DeleteFunc([]string{"n2@127.0.0.1", "n3@127.0.0.1", "n4@127.0.0.1"}, func(n string) bool { return slices.Contains(holders, n) })
	w.replaceOnce(holders[0], rest[0], false)
	w.wantKept(holders[1], node1, `"pond"`)
	m, _ := w.meta.Database("pond")
	if err := w.locals[rest[0]].Create(t.Context(), m.CopiesOn(rest[0])[0], shard.CreateOptions{ID: m.Shards[0].Copies[0].ID}); err != nil {
		t.Fatal(err)
	}
	w.replaceOnce(holders[1], node1, false)
}
