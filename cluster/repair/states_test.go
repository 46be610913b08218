package repair

import (
	"fmt"
	"slices"
	"testing"

	"divan/shard"
	"divan/storage/fault"
)

// TestComplete asks another node which copies it has, more than other messages
// may name.
func TestComplete(t *testing.T) {
	inWorld(t, 2, nil, func(w *world) {
		a, b := w.node(0), w.node(1)
		asked := []string{b.copy}
		for i := range 2 * maxNames {
			asked = append(asked, fmt.Sprintf("shards/00000000-ffffffff/none%d.1763600000", i))
		}
		want := func(want ...string) {
			t.Helper()
			if got, err := a.repair.Complete(w.ctx, b.name, asked); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
		}
		want(b.copy)
		const more = "shards/00000000-ffffffff/none7.1763600000"
		if err := b.Create(w.ctx, more, shard.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want(b.copy, more)
		a.setDown(true) // so that nothing is pushed
		b.lose(lost())
		if got, err := Complete(b.Local, asked); err != nil || !slices.Equal(got, []string{more}) { // what it would tell
			t.Errorf("%q, %v", got, err)
		}
		a.setDown(false)
		b.setDown(true)
		if got, err := a.repair.Complete(w.ctx, b.name, asked); !fault.Is(err, fault.NodeDown) || len(got) != 0 {
			t.Errorf("%q, %v", got, err)
		}
	})
}
