package shard

import (
	"bytes"
	"fmt"
	"testing"

	"divan/storage/doc"
)

// stored makes the record that a state would leave behind.
func record(tb testing.TB, s *docState, seq uint64) *doc.Record {
	tb.Helper()
	out := s.writes(new([]byte))
	if out.next == nil {
		return nil
	}
	out.next.Seq = seq
	return out.next
}

func body(n int) []byte {
	return append(append([]byte(`{"v":"`), bytes.Repeat([]byte("x"), n)...), `"}`...)
}

func put(s *docState, p doc.Path, size int, deleted bool) {
	s.add(p, doc.Revision{Body: body(size), Deleted: deleted}, nil, 0)
}

func putsOf(tb testing.TB, s *docState) (puts, dels []string) {
	tb.Helper()
	out := s.writes(new([]byte))
	for _, p := range out.puts {
		puts = append(puts, p.rev.String())
	}
	for _, r := range out.dels {
		dels = append(dels, r.String())
	}
	return puts, dels
}

func equal(a []string, b ...string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// The winner's content is in the record when it is small; the content it
// displaces goes to the bodies keyspace and stays readable.
func TestSealMovesContents(t *testing.T) {
	s := newDocState("d", nil)
	put(s, path(t, "1-a"), 10, false)
	r1 := record(t, s, 1)
	if p, d := putsOf(t, s); r1.Inline == nil || p != nil || d != nil {
		t.Fatalf("small first revision: inline %v, puts %v, dels %v", r1.Inline != nil, p, d)
	}
	s = newDocState("d", r1)
	put(s, path(t, "2-b a"), 2*doc.InlineLimit, false)
	r2 := record(t, s, 2)
	if p, d := putsOf(t, s); r2.Inline != nil || !equal(p, "2-b", "1-a") || d != nil {
		t.Fatalf("large second revision: inline %v, puts %v, dels %v", r2.Inline != nil, p, d)
	}
	s = newDocState("d", r2)
	put(s, path(t, "2-c a"), 10, false) // wins, and the large one stays where it is
	r3 := record(t, s, 3)
	if p, d := putsOf(t, s); r3.Inline == nil || r3.Winner != rev(t, "2-c") || p != nil || d != nil {
		t.Fatalf("third: inline %v, winner %v, puts %v, dels %v", r3.Inline != nil, r3.Winner, p, d)
	}
	s = newDocState("d", r3)
	put(s, path(t, "3-d c"), 10, true) // the large one wins again, without a read
	r4 := record(t, s, 4)
	if p, d := putsOf(t, s); r4.Inline != nil || r4.Winner != rev(t, "2-b") || !equal(p, "3-d", "2-c") || d != nil {
		t.Fatalf("fourth: inline %v, winner %v, puts %v, dels %v", r4.Inline != nil, r4.Winner, p, d)
	}
	if want := int64(len(body(2*doc.InlineLimit)) + len(body(10))); r4.External != want {
		t.Fatalf("external size %d, want %d", r4.External, want)
	}
}

func TestSealDropsWhatStemmingCuts(t *testing.T) {
	s := newDocState("d", nil)
	put(s, path(t, "1-a"), 10, false)
	r := record(t, s, 1)
	for i, p := range []string{"2-b a", "3-c b"} {
		s = newDocState("d", r)
		s.add(path(t, p), doc.Revision{Body: body(10)}, nil, 2)
		r = record(t, s, uint64(i)+2)
	}
	// 1-a was inside the record first and went to the bodies with 2-b.
	if p, d := putsOf(t, s); !equal(p, "2-b") || !equal(d, "1-a") {
		t.Fatalf("puts %v, dels %v", p, d)
	}
	// With a limit of one nothing of the old winner is written any more.
	s = newDocState("d", r)
	s.add(path(t, "4-d c"), doc.Revision{Body: body(10)}, nil, 1)
	if p, d := putsOf(t, s); p != nil || !equal(d, "2-b") {
		t.Fatalf("puts %v, dels %v", p, d)
	}
}

func TestSealOfPurge(t *testing.T) {
	s := newDocState("d", nil)
	put(s, path(t, "1-a"), 10, false)
	put(s, path(t, "2-b a"), 10, false)
	put(s, path(t, "2-c a"), 10, false)
	r := record(t, s, 1)
	s = newDocState("d", r)
	if got := s.purge([]doc.Rev{rev(t, "1-a"), rev(t, "2-c")}, &purgedHistory{}); len(got) != 1 || got[0] != rev(t, "2-c") {
		t.Fatalf("purged %v", got)
	}
	next := record(t, s, 2)
	if p, d := putsOf(t, s); next.Winner != rev(t, "2-b") || next.Inline != nil || p != nil || d != nil {
		t.Fatalf("winner %v, puts %v, dels %v", next.Winner, p, d)
	}
	s = newDocState("d", next)
	if got := s.purge([]doc.Rev{rev(t, "2-b")}, &purgedHistory{}); len(got) != 1 {
		t.Fatalf("purged %v", got)
	}
	if record(t, s, 3) != nil {
		t.Fatal("a document without leaves is still there")
	}
	if _, d := putsOf(t, s); !equal(d, "1-a", "2-b") {
		t.Fatalf("dels %v", d)
	}
	// Written again in the same group: a document anew, old contents gone.
	put(s, path(t, "2-b a"), 20, false)
	next = record(t, s, 3)
	if next == nil || next.Inline == nil || next.Winner != rev(t, "2-b") {
		t.Fatalf("got %+v", next)
	}
	v, ok, err := s.revision(rev(t, "2-b"))
	if err != nil || !ok || !bytes.Equal(v.Body, body(20)) {
		t.Fatalf("content %q %v %v", v.Body, ok, err)
	}
}

// A clone goes its own way, however much space the tree has to grow.
func TestStateClone(t *testing.T) {
	for size := 1; size < 10; size++ {
		s := newDocState("d", nil)
		ids := []string{}
		for i := range size {
			ids = append([]string{fmt.Sprint("n", i)}, ids...)
			put(s, doc.Path{Start: uint64(i + 1), IDs: ids}, 10, false)
		}
		c := s.clone()
		leaf := func(id string) doc.Path {
			return doc.Path{Start: uint64(size + 1), IDs: append([]string{id}, ids...)}
		}
		put(c, leaf("b"), 10, false)
		put(s, leaf("c"), 10, false)
		if w := record(t, c, 1).Winner; w != leaf("b").Rev() {
			t.Fatalf("size %d: clone's winner %v", size, w)
		}
		if w := record(t, s, 1).Winner; w != leaf("c").Rev() || len(s.tree.Leaves()) != 1 {
			t.Fatalf("size %d: winner %v of %v", size, w, s.tree.Leaves())
		}
	}
}
