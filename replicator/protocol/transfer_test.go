package protocol

import (
	"fmt"
	"testing"

	"divan/replicator/endpoint"
	"divan/storage/doc"
)

// A document that a batch has twice is asked for once.
func TestMerged(t *testing.T) {
	rev := func(pos uint64) doc.Rev { return doc.Rev{Pos: pos, ID: "x"} }
	got := merged([]endpoint.Wanted{
		{ID: "a", Revs: []doc.Rev{rev(2)}, Ancestors: []doc.Rev{rev(1)}},
		{ID: "b", Revs: []doc.Rev{rev(1)}},
		{ID: "a", Revs: []doc.Rev{rev(3), rev(2)}, Ancestors: []doc.Rev{rev(1)}},
	})
	want := []endpoint.Wanted{{ID: "a", Revs: []doc.Rev{rev(2), rev(3)}, Ancestors: []doc.Rev{rev(1)}}, {ID: "b", Revs: []doc.Rev{rev(1)}}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
