package shard

import (
	"fmt"
	"testing"
)

func TestRecent(t *testing.T) {
	var r recentWrites
	r.reset(10)
	if r.unchanged("a", 9) {
		t.Fatal("read before everything that is remembered")
	}
	if !r.unchanged("a", 10) {
		t.Fatal("nothing has happened")
	}
	r.note(11, []string{"a", "b"})
	r.note(12, []string{"b"})
	for _, c := range []struct {
		id   string
		ts   uint64
		want bool
	}{{"a", 10, false}, {"a", 11, true}, {"b", 11, false}, {"b", 12, true}, {"c", 10, true}} {
		if got := r.unchanged(c.id, c.ts); got != c.want {
			t.Errorf("unchanged(%s, %d) = %v", c.id, c.ts, got)
		}
	}
	for i := range uint64(2 * recentGroups) {
		r.note(13+i, []string{fmt.Sprint(i)})
	}
	if len(r.last) != recentGroups || len(r.groups) != recentGroups {
		t.Fatalf("remembers %d documents of %d rounds", len(r.last), len(r.groups))
	}
	if r.unchanged("c", 12) {
		t.Fatal("12 has been forgotten")
	}
	if !r.unchanged("a", r.floor) {
		t.Fatal("what has been forgotten was seen by who read at the floor")
	}
	// A document that is changed in each group must not be forgotten with the
	// first of them.
	r.reset(0)
	for i := range uint64(recentGroups + 2) {
		r.note(1+i, []string{"hot"})
	}
	if r.unchanged("hot", recentGroups+1) || !r.unchanged("hot", recentGroups+2) {
		t.Fatal("forgot a change")
	}
}
