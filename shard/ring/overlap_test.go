package ring

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// points are where a test looks at the ring: both ends of eighths.
func points() []uint32 {
	var out []uint32
	for _, r := range Split(8) {
		out = append(out, r.Begin, r.End)
	}
	return out
}

// part is one of the ranges that splits and merges make of a ring.
func part(t *rapid.T, label string) Range {
	q := rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, label+" of")
	return rapid.SampledFrom(Split(q)).Draw(t, label)
}

// TestEverywhere: what is asked of each point of a range is asked of the copies that hold it.
func TestEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shards []Shard
		for i := range rapid.IntRange(0, 6).Draw(t, "shards") {
			shards = append(shards, Shard{Range: part(t, "shard"), Copies: []Copy{{ID: uint64(i + 1)}}})
		}
		slices.SortStableFunc(shards, byRange)
		r := part(t, "range")
		seen := map[string]bool{}
		key := func(copies []Copy) string {
			var ids []byte
			for _, c := range copies {
				ids = append(ids, byte(c.ID))
			}
			return string(ids)
		}
		Everywhere(shards, r, func(copies []Copy) bool {
			seen[key(copies)] = true
			return true
		})
		want := map[string]bool{}
		for _, at := range points() {
			if !r.Contains(at) {
				continue
			}
			var copies []Copy
			for _, s := range shards {
				if s.Contains(at) {
					copies = append(copies, s.Copies...)
				}
			}
			want[key(copies)] = true
		}
		if len(seen) != len(want) {
			t.Fatalf("%v of %v: seen %v, want %v", r, shards, seen, want)
		}
		for k := range want {
			if !seen[k] {
				t.Fatalf("%v of %v: not seen %v", r, shards, []byte(k))
			}
		}
	})
}

// TestChangesKeepMapsValid: after any proposals each point keeps a full copy, no node has two
// copies of a point, and ids are never given again.
func TestChangesKeepMapsValid(t *testing.T) {
	left := 0
	rapid.Check(t, func(t *rapid.T) {
		index := uint64(1)
		shards := []Shard{{Range: Full(), Copies: CopiesOn("a", "b", "c")[:rapid.IntRange(1, 3).Draw(t, "copies")]}}
		shards = Identify(shards, IDsOf(index))
		for range 60 {
			index++
			before := shards
			next, ok := propose(t, shards, IDsOf(index))
			if !ok {
				continue
			}
			shards = next
			if !Valid(shards) || !Identified(shards) {
				t.Fatalf("%+v became %+v", before, shards)
			}
			for _, at := range points() {
				full := map[string]bool{}
				for _, s := range shards {
					for _, c := range s.Full() {
						if s.Contains(at) && full[c.Node] {
							t.Fatalf("%s has two full copies of %08x: %s became %s", c.Node, at, show(before), show(shards))
						}
						full[c.Node] = full[c.Node] || s.Contains(at)
					}
				}
			}
			for _, s := range shards {
				for _, c := range s.Copies {
					if c.State == StateLeaving {
						left++
					}
					if CommandOf(c.ID) > index {
						t.Fatalf("%+v", shards)
					}
				}
			}
		}
	})
	if left == 0 {
		t.Error("no copy ever left")
	}
}

// show tells a map in full.
func show(shards []Shard) (out []string) {
	for _, s := range shards {
		out = append(out, fmt.Sprintf("%v %v", s.Range, s.Copies))
	}
	return out
}

// propose proposes something to a map.
func propose(t *rapid.T, shards []Shard, ids *NewCopies) ([]Shard, bool) {
	node := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")
	var own []Copy
	var full []uint64
	splits, joins := part(t, "of"), false
	for _, s := range shards {
		if c, ok := s.CopyOn(node); ok {
			own, joins = append(own, c), joins || c.State == StateJoining
			if c.State == StateFull && s.End-s.Begin > Split(8)[0].End {
				splits = s.Range
			}
		}
		for _, c := range s.Full() {
			full = append(full, c.ID)
		}
	}
	switch what := rapid.IntRange(-3, 9).Draw(t, "what"); {
	case what == -3:
		return Add(shards, []Addition{{Range: part(t, "lost"), Node: node, Instead: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "from"), Lost: true}}, ids)
	case what == -2:
		return Add(shards, []Addition{{Range: part(t, "moved"), Node: node, Instead: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "from")}}, ids)
	case what == -1:
		for i := range shards {
			if ch, ok := Moved(shards, &shards[i], node); ok {
				return Apply(shards, []Change{ch}, ids)
			}
		}
		return nil, false
	case what < 2:
		half := Range{splits.Begin, splits.Begin + (splits.End-splits.Begin)/2}
		return Add(shards, []Addition{{Range: half, Node: node}, {Range: Range{half.End + 1, splits.End}, Node: node}}, ids)
	case what == 2:
		return Add(shards, []Addition{{Range: part(t, "union"), Node: node}}, ids)
	case what == 3:
		return Replace(shards, node, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "by"), ids)
	case what < 7 || joins && what == 7: // all of the node that joins takes the place of what is full there
		var changes []Change
		for _, c := range own {
			switch c.State {
			case StateCopying:
				changes = append(changes, Change{Copy: c.ID, To: StateJoining})
			case StateJoining:
				changes = append(changes, Change{Copy: c.ID, To: StateFull, Filled: full})
			case StateFull:
				if joins && rapid.IntRange(0, 3).Draw(t, "stays") < 3 {
					changes = append(changes, Change{Copy: c.ID, To: StateLeaving})
				}
			default:
				changes = append(changes, Change{Copy: c.ID, To: StateGone})
			}
		}
		return Apply(shards, changes, ids)
	default:
		if len(own) == 0 {
			return nil, false
		}
		one := rapid.SampledFrom(own).Draw(t, "copy")
		to := rapid.SampledFrom([]State{StateFull, StateJoining, StateLeaving, StateGone}).Draw(t, "to")
		return Apply(shards, []Change{{Copy: one.ID, To: to, Filled: full}}, ids)
	}
}

func TestVisible(t *testing.T) {
	half := Split(2)
	shards := []Shard{
		{Range: half[0], Copies: []Copy{{ID: 2, Node: "a", State: StateJoining}}},
		{Range: Full(), Copies: []Copy{{ID: 1, Node: "a"}, {ID: 4, Node: "b", State: StateLeaving}}},
		{Range: half[1], Copies: []Copy{{ID: 3, Node: "a", State: StateCopying}}},
	}
	got := Visible(shards)
	if len(got) != 1 || got[0].Range != Full() || len(got[0].Copies) != 1 || len(shards[1].Copies) != 2 {
		t.Errorf("%+v", got)
	}
	if got := Visible(shards[1:2]); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if Valid(shards[:1]) || !Valid(shards) || Valid([]Shard{{Range: Range{0, math.MaxUint32 - 1}, Copies: CopiesOn("a")}}) {
		t.Error("what is valid")
	}
}

// TestSuperfluous: a node that has the whole takes the place of one that had a half of it: that half
// joins, cannot be full, and goes.
func TestSuperfluous(t *testing.T) {
	half, whole := Split(2), Full()
	on := func(node string, id uint64) Copy { return Copy{ID: id, Node: node} }
	joins := func(node string, id uint64) Copy { return Copy{ID: id, Node: node, State: StateJoining} }
	shards, ok := Replace([]Shard{
		{Range: half[0], Copies: []Copy{on("lost", 1)}},
		{Range: whole, Copies: []Copy{on("a", 2), on("b", 3)}},
		{Range: half[1], Copies: []Copy{on("c", 4)}},
	}, "lost", "b", IDsOf(1))
	c, there := shards[0].CopyOn("b")
	if !ok || !there || c.State != StateJoining {
		t.Fatalf("after the replacement: %v", show(shards))
	}
	if !Superfluous(shards, half[0], "b") {
		t.Error("half of what the node has is not superfluous")
	}
	gone, ok := Apply(shards, []Change{{Copy: c.ID, To: StateGone}}, IDsOf(2))
	if !ok || !Valid(gone) || slices.ContainsFunc(gone, func(s Shard) bool { return s.Range == half[0] }) {
		t.Errorf("what is superfluous does not go: %v", show(gone))
	}
	for name, shards := range map[string][]Shard{
		"a split": {
			{Range: half[0], Copies: []Copy{joins("b", 1)}}, {Range: whole, Copies: []Copy{on("b", 2)}}, {Range: half[1], Copies: []Copy{joins("b", 3)}},
		},
		"a split of which one target is not copied yet": {
			{Range: half[0], Copies: []Copy{joins("b", 1)}},
			{Range: whole, Copies: []Copy{on("b", 2)}},
			{Range: half[1], Copies: []Copy{{ID: 3, Node: "b", State: StateCopying}}},
		},
		"a copy of another node": {
			{Range: half[0], Copies: []Copy{joins("b", 1)}}, {Range: whole, Copies: []Copy{on("a", 2)}}, {Range: half[1], Copies: []Copy{on("b", 3)}},
		},
	} {
		if Superfluous(shards, half[0], "b") {
			t.Errorf("%s: the first half is superfluous", name)
		}
	}
	merge := []Shard{
		{Range: half[0], Copies: []Copy{on("b", 1)}}, {Range: whole, Copies: []Copy{joins("b", 2)}}, {Range: half[1], Copies: []Copy{on("b", 3)}},
	}
	if Superfluous(merge, whole, "b") {
		t.Error("a merge is superfluous")
	}
}
