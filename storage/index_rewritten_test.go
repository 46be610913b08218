package storage

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// NextRewritten goes the same way as Next, no matter which keys were written how
// often, through a snapshot and through a batch.
func TestNextRewritten(t *testing.T) {
	x := openIndex(t, newStore(t, CreateOptions{CopyID: 1, Small: true}), "a")
	rapid.Check(t, func(t *rapid.T) {
		b := x.NewBatch(true)
		defer b.Close()
		for i := range rapid.IntRange(1, 200).Draw(t, "changes") {
			key := fmt.Append(nil, "k", rapid.IntRange(0, 12).Draw(t, "key"))
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				b.Delete(key)
			case 1:
				if err := b.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
			default:
				b.Rewrite(key, fmt.Append(nil, i))
			}
		}
		sameSteps(t, func() (*IndexIterator, error) { return b.Iterate([]byte("k"), []byte("k9")) })
		if err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		snap, err := x.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		sameSteps(t, func() (*IndexIterator, error) { return snap.Iterate(nil, nil) })
	})
	if hot := x.rewritten.Hot(); !hot.Has([]byte("k1")) {
		t.Error("nothing was rewritten often")
	}
}

func sameSteps(t *rapid.T, open func() (*IndexIterator, error)) {
	t.Helper()
	steps := func(next func(*IndexIterator) bool) (out []string) {
		it, err := open()
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.First(); ok; ok = next(it) {
			v, err := it.Value()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s=%s", it.Key(), v))
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if a, b := steps((*IndexIterator).Next), steps((*IndexIterator).NextRewritten); !slices.Equal(a, b) {
		t.Fatalf("Next finds %q, NextRewritten %q", a, b)
	}
}
