package rewritten

import (
	"fmt"
	"testing"
)

// A key becomes hot when it was written often, and stays so when many others are written
// once; what is counted has a bound.
func TestKeys(t *testing.T) {
	k := New()
	root, other := []byte("root"), []byte("other")
	for range hotWrites - 1 {
		k.Wrote(root)
		k.Wrote(other)
	}
	if k.Hot().Has(root) {
		t.Fatalf("hot after %d writes", hotWrites-1)
	}
	before := k.Hot()
	for i := range 100_000 {
		k.Wrote(root)
		k.Wrote(fmt.Append(nil, i))
		if len(k.counts) > maxKeys {
			t.Fatalf("%d keys are counted", len(k.counts))
		}
		if i > hotWrites && !k.Hot().Has(root) {
			t.Fatalf("not hot any more after %d others", i)
		}
	}
	if before.Has(root) || k.Hot().Has(other) || k.Hot().Has([]byte("never")) {
		t.Fatal("what was seldom written is hot")
	}
}
