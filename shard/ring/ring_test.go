package ring

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

// The ranges and owners that CouchDB 3.5 tells for these ids (its _shards).
func TestAsCouchDB(t *testing.T) {
	for _, c := range []struct {
		q           int
		partitioned bool
		id, want    string
	}{
		{1, false, "a", "00000000-ffffffff"},
		{2, false, "a", "80000000-ffffffff"},
		{2, false, "hello", "00000000-7fffffff"},
		{4, false, "a", "c0000000-ffffffff"},
		{4, false, "b", "40000000-7fffffff"},
		{4, false, "hello", "00000000-3fffffff"},
		{4, false, "nothing here", "00000000-3fffffff"},
		{4, false, "_design/d", "40000000-7fffffff"},
		{4, false, "a/b", "00000000-3fffffff"},
		{4, false, "ü", "40000000-7fffffff"},
		{4, true, "p1:a", "00000000-3fffffff"},
		{4, true, "p1:b", "00000000-3fffffff"},
		{4, true, "p2:a", "80000000-bfffffff"},
		{4, true, "_design/d", "40000000-7fffffff"},
	} {
		ranges := Split(c.q)
		i := slices.IndexFunc(ranges, func(r Range) bool { return r.Contains(Hash(c.id, c.partitioned)) })
		if got := ranges[i].String(); got != c.want {
			t.Errorf("q=%d %s: %s, want %s", c.q, c.id, got, c.want)
		}
	}
	if got := fmt.Sprint(Split(3)); got != "[00000000-55555554 55555555-aaaaaaa9 aaaaaaaa-ffffffff]" {
		t.Errorf("q=3: %s", got)
	}
}

func TestHashIsCRC32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.String().Draw(t, "id") + strings.Repeat("x", rapid.IntRange(0, 600).Draw(t, "more"))
		if got := Hash(id, false); got != crc32.ChecksumIEEE([]byte(id)) {
			t.Fatalf("%q: %08x", id, got)
		}
		part, _, found := strings.Cut(id, ":")
		want := Hash(id, false)
		if found && !strings.HasPrefix(id, "_") {
			want = Hash(part, false)
		}
		if got := Hash(id, true); got != want {
			t.Fatalf("%q in a partitioned database: %08x, want %08x", id, got, want)
		}
	})
}

func TestHashDoesNotAllocate(t *testing.T) {
	id := strings.Repeat("a", 64)
	if n := testing.AllocsPerRun(100, func() { Hash(id, true) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSplit(t *testing.T) {
	for q := 1; q <= MaxQ; q++ {
		ranges := Split(q)
		var shards []Shard
		for _, r := range ranges {
			shards = append(shards, Shard{Range: r, Copies: CopiesOn("a")})
		}
		if len(ranges) != q || !Covers(shards) {
			t.Fatalf("q=%d: %v", q, ranges)
		}
	}
	for _, q := range []int{0, -1, MaxQ + 1} {
		if Split(q) != nil {
			t.Errorf("q=%d was split", q)
		}
	}
}

func TestCovers(t *testing.T) {
	whole := Shard{Range: Full(), Copies: CopiesOn("a")}
	half := Split(2)
	for name, shards := range map[string][]Shard{
		"nothing":   nil,
		"no copy":   {{Range: Full()}},
		"twice":     {{Range: Full(), Copies: CopiesOn("a", "b", "a")}},
		"overlap":   {whole, whole},
		"gap":       {{Range: Range{0, 5}, Copies: CopiesOn("a")}, {Range: Range{7, 1<<32 - 1}, Copies: CopiesOn("a")}},
		"no end":    {{Range: half[0], Copies: CopiesOn("a")}},
		"backwards": {{Range: half[1], Copies: CopiesOn("a")}, {Range: half[0], Copies: CopiesOn("a")}},
	} {
		if Covers(shards) {
			t.Errorf("%s: covers", name)
		}
	}
	if !Covers([]Shard{whole}) {
		t.Error("the whole ring does not cover")
	}
}

func TestRangeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Range{Begin: rapid.Uint32().Draw(t, "begin")}
		r.End = rapid.Uint32Min(r.Begin).Draw(t, "end")
		if want := fmt.Sprintf("%08x-%08x", r.Begin, r.End); r.String() != want {
			t.Fatalf("%s, want %s", r, want)
		}
		if got, err := ParseRange(r.String()); err != nil || got != r {
			t.Fatalf("%s parsed as %v, %v", r, got, err)
		}
	})
	for _, s := range []string{"", "0-1", "00000000_ffffffff", "00000000-FFFFFFFF", "80000000-7fffffff", "00000000-ffffffff "} {
		if r, err := ParseRange(s); err == nil {
			t.Errorf("%q parsed as %v", s, r)
		}
	}
}

func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []Node
		for i := range rapid.IntRange(1, 9).Draw(t, "nodes") {
			nodes = append(nodes, Node{Name: fmt.Sprintf("n%d", i), Draining: rapid.IntRange(0, 3).Draw(t, "draining") == 0})
		}
		live := 0
		for _, n := range nodes {
			if !n.Draining {
				live++
			}
		}
		r := Request{Nodes: nodes, Q: rapid.IntRange(1, 20).Draw(t, "q"), N: rapid.IntRange(1, 5).Draw(t, "n"), Rotate: rapid.Uint64().Draw(t, "rotate")}
		shards, err := Place(r)
		if live == 0 {
			if !fault.Is(err, fault.Unavailable) {
				t.Fatalf("no node: %v", err)
			}
			return
		}
		if err != nil || len(shards) != r.Q || !Covers(shards) {
			t.Fatalf("%+v: %v, %v", r, shards, err)
		}
		quorum := min(r.N, len(nodes))/2 + 1
		drained := max(quorum-live, 0) // as many have to take copies
		live = max(live, quorum)
		copies, leads := map[string]int{}, map[string]int{}
		for _, s := range shards {
			if len(s.Nodes()) != min(r.N, live) {
				t.Fatalf("%d copies, want %d", len(s.Nodes()), min(r.N, live))
			}
			leads[s.Nodes()[0]]++
			for _, n := range s.Nodes() {
				copies[n]++
			}
			on := 0
			for _, n := range nodes {
				if n.Draining && s.On(n.Name) {
					on++
				}
			}
			if on != drained {
				t.Fatalf("copies on %d draining nodes, want %d: %v", on, drained, s.Nodes())
			}
		}
		if spread := most(copies) - r.Q*min(r.N, live)/live; spread > 1 {
			t.Fatalf("copies per node %v", copies)
		}
		if min(r.N, live) == live && most(leads) > (r.Q+live-1)/live {
			t.Fatalf("first copies per node %v", leads)
		}
	})
}

func most(counts map[string]int) int {
	top := 0
	for _, n := range counts {
		top = max(top, n)
	}
	return top
}

func TestPlaceByZone(t *testing.T) {
	nodes := []Node{{Name: "a", Zone: "x"}, {Name: "b", Zone: "x"}, {Name: "c", Zone: "y"}, {Name: "d", Zone: "y", Draining: true}, {Name: "e"}}
	shards, err := Place(Request{Nodes: nodes, Q: 3, N: 9, Placement: Placement{{"x", 2}, {"y", 3}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		got := slices.Sorted(slices.Values(s.Nodes()))
		if !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("%v on %v", s.Range, got)
		}
	}
	shards, err = Place(Request{Nodes: nodes, Q: 1, Placement: Placement{{"x", 1}, {"x", 2}}})
	if err != nil || !Covers(shards) {
		t.Errorf("a zone named twice: %v, %v", shards, err)
	}
	for _, r := range []Request{{Nodes: nodes, Q: 1, Placement: Placement{{"z", 1}}}, {Q: 1, N: 1}} {
		if _, err := Place(r); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	for _, r := range []Request{{Nodes: nodes, N: 1}, {Nodes: nodes, Q: 1}, {Nodes: nodes, Q: MaxQ + 1, N: 1}} {
		if _, err := Place(r); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestParsePlacement(t *testing.T) {
	got, err := ParsePlacement("metro-dc-a:2, metro-dc-b:1")
	if err != nil || got.String() != "metro-dc-a:2,metro-dc-b:1" {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []string{"", "zone", "zone:x", "zone:0", "a:1,b", ":1", "a:1,", "a:-1"} {
		_, err := ParsePlacement(s)
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != "The `placement` value should be in a format `zone:n`." {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzParsePlacement(f *testing.F) {
	f.Add("a:1,b:2")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePlacement(s)
		if err != nil {
			return
		}
		again, err := ParsePlacement(p.String())
		if err != nil || !slices.Equal(again, p) {
			t.Fatalf("%q: %v became %v, %v", s, p, again, err)
		}
	})
}
