package cluster

import (
	"slices"
	"strings"
	"testing"

	"divan/shard/ring"
	"divan/storage/fault"
)

// wantKept replaces a node, which must be refused with a text that holds all of
// parts.
func (w *world) wantKept(old, by string, parts ...string) {
	w.tb.Helper()
	err := w.meta.ReplaceNode(w.tb.Context(), old, by, false)
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
	if err := w.meta.ReplaceNode(w.tb.Context(), old, by, force); err != nil {
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

// TestReplaceBesideJoiningCopies: a copy that is being filled counts for nothing, and as
// long as there is one, each full copy may be the last that has something.
func TestReplaceBesideJoiningCopies(t *testing.T) {
	const old, by = "n3@127.0.0.1", "n4@127.0.0.1"
	w := start(t, setup{nodes: 3, still: true})
	d := w.create("pond", CreateOptions{N: 3, Q: 1})
	other, _ := w.meta.Node(node1)
	other.Name = by
	if err := w.meta.PutNode(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	name := d.Meta().CopiesOn(node1)[0]
	w.joinAgain(name, node1)
	w.wantKept(old, by, `"pond"`)
	w.joinAgain(name, node2)
	w.wantKept(old, by, `"pond"`)
	for _, node := range []string{node1, node2} {
		w.change(name, node, ring.StateFull, w.idOf(name, node1), w.idOf(name, node2), w.idOf(name, node3))
	}
	w.replaceOnce(old, by, false)
	if _, one, _ := w.meta.CopyIn(name, by); one.State != ring.StateJoining {
		t.Errorf("the new one is %s", one.State)
	}
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
	name := d.Meta().CopiesOn(holders[0])[0]
	rest := slices.DeleteFunc([]string{"n2@127.0.0.1", "n3@127.0.0.1", "n4@127.0.0.1"}, func(n string) bool { return slices.Contains(holders, n) })
	w.replaceOnce(holders[0], rest[0], false)
	w.wantKept(holders[1], node1, `"pond"`)
	w.change(name, rest[0], ring.StateFull, w.idOf(name, holders[1]))
	w.replaceOnce(holders[1], node1, false)
}

// TestReplaceByForce: what only the old node had is given up, and the range can be used.
func TestReplaceByForce(t *testing.T) {
	const by = node1
	w := start(t, setup{nodes: 3, still: true})
	if err := w.meta.SetDraining(t.Context(), by, true); err != nil {
		t.Fatal(err)
	}
	d := w.create("pond", CreateOptions{N: 2, Q: 1})
	holders := d.Meta().Shards[0].Nodes()
	name := d.Meta().CopiesOn(holders[0])[0]
	w.joinAgain(name, holders[0])
	w.wantKept(holders[1], by, `"pond"`)
	w.replaceOnce(holders[1], by, true)
	if _, one, _ := w.meta.CopyIn(name, by); one.State != ring.StateFull {
		t.Errorf("no copy is full: %s", one.State)
	}
	if _, one, _ := w.meta.CopyIn(name, holders[0]); one.State != ring.StateJoining {
		t.Errorf("the other one is %s", one.State)
	}
}
