package recentwrites

import (
	"fmt"
	"testing"
)

func TestRecent(t *testing.T) {
	var r Writes
	r.Reset(10)
	if r.Unchanged("a", 9) {
		t.Fatal("read before everything that is remembered")
	}
	if !r.Unchanged("a", 10) {
		t.Fatal("nothing has happened")
	}
	r.Note(11, []string{"a", "b"})
	r.Note(12, []string{"b"})
	for _, c := range []struct {
		id   string
		ts   uint64
		want bool
	}{{"a", 10, false}, {"a", 11, true}, {"b", 11, false}, {"b", 12, true}, {"c", 10, true}} {
		if got := r.Unchanged(c.id, c.ts); got != c.want {
			t.Errorf("unchanged(%s, %d) = %v", c.id, c.ts, got)
		}
	}
	for i := range uint64(2 * maxGroups) {
		r.Note(13+i, []string{fmt.Sprint(i)})
	}
	if len(r.groups) != maxGroups {
		t.Fatalf("remembers %d groups", len(r.groups))
	}
	if r.Unchanged("c", 12) {
		t.Fatal("12 has been forgotten")
	}
	if !r.Unchanged("a", r.floor) {
		t.Fatal("what has been forgotten was seen by who read at the floor")
	}
	// A document that is changed in each group must not be forgotten with the
	// first of them.
	r.Reset(0)
	for i := range uint64(maxGroups + 2) {
		r.Note(1+i, []string{"hot"})
	}
	if r.Unchanged("hot", maxGroups+1) || !r.Unchanged("hot", maxGroups+2) {
		t.Fatal("forgot a change")
	}
	// Large groups, in any order of ids, with questions on both sides of their borders.
	r.Reset(0)
	var ids []string
	for i := range 4 * fewIDs {
		ids = append(ids, fmt.Sprintf("%02d", 10+7*i%(4*fewIDs)))
	}
	r.Note(1, ids)
	r.Note(2, nil)
	for id, want := range map[string]bool{"09": true, "10": false, "37": false, "73": false, "74": true, "37x": true} {
		for range 2 {
			if got := r.Unchanged(id, 0); got != want {
				t.Errorf("unchanged(%s) in a large group = %v", id, got)
			}
		}
	}
	if !r.Unchanged("37", 1) {
		t.Error("a group that was seen counts")
	}
}
