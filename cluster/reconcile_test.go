package cluster

import (
	"slices"
	"testing"
	"time"
)

// TestTakesThePlaceOfAnother gives this node the copies of one that is gone.
func TestTakesThePlaceOfAnother(t *testing.T) {
	w := start(t, setup{nodes: 3})
	const other = "n2@127.0.0.1"
	d := w.create("db", CreateOptions{N: 1, Q: 4})
	theirs := d.Meta().CopiesOn(other)
	if len(theirs) == 0 {
		t.Fatal("the other node has no copies")
	}
	if err := w.meta.ReplaceNode(t.Context(), other, node1, true); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		names, err := w.locals[node1].Copies.Names()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(theirs, func(name string) bool { return !slices.Contains(names, name) }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%q are not among %q", theirs, names)
		}
		<-time.After(5 * time.Millisecond)
	}
}
