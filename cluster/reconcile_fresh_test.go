package cluster

import (
	"slices"
	"testing"

	"go.uber.org/zap"
	zaplogs "go.uber.org/zap/zaptest/observer"
)

// TestFreshCopiesAreNotCalledMissing: a sweep says nothing of copies of databases that this node
// has not made yet. Any other copy that is missing was lost.
func TestFreshCopiesAreNotCalledMissing(t *testing.T) {
	w := start(t, setup{nodes: 2, still: true})
	copies := w.create("db", CreateOptions{N: 2, Q: 2}).Meta().CopiesOn(node1)
	core, logs := zaplogs.New(zap.WarnLevel)
	w.log = zap.New(core)
	k := &reconciler{c: w.Coordinator}
	warned := func(what string, want int) {
		t.Helper()
		for _, name := range copies {
			if err := w.locals[node1].Copies.Drop(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.Coordinator.join(t.Context(), w.missing.Take()); err != nil {
			t.Fatal(err)
		}
		if err := k.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := logs.FilterMessage("copy is missing, it joins").Len(); got != want {
			t.Errorf("%s: %d warnings, want %d", what, got, want)
		}
		names, err := w.locals[node1].Copies.Names()
		if err != nil || !slices.Contains(names, copies[0]) {
			t.Errorf("%s: the copy is not made, %v", what, err)
		}
	}
	warned("the first sweep", 0)
	warned("the second", len(copies))
}
