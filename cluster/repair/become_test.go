package repair

import (
	"fmt"
	"testing"

	"divan/cluster/meta"
	"divan/shard/ring"
)

// TestBecome: what becomes full together, and what leaves for it.
func TestBecome(t *testing.T) {
	half, whole := ring.Split(2), ring.Full()
	on := func(r ring.Range, id uint64, state ring.State) ring.Shard {
		return ring.Shard{Range: r, Copies: []ring.Copy{{ID: id, Node: "a", State: state}, {ID: id + 100, Node: "b"}}}
	}
	split := []ring.Shard{
		{Range: half[0], Copies: []ring.Copy{{ID: 2, Node: "a", State: ring.StateJoining}}},
		on(whole, 1, ring.StateFull),
		{Range: half[1], Copies: []ring.Copy{{ID: 3, Node: "a", State: ring.StateJoining}}},
	}
	merge := []ring.Shard{
		on(half[0], 1, ring.StateFull),
		{Range: whole, Copies: []ring.Copy{{ID: 3, Node: "a", State: ring.StateJoining}}},
		on(half[1], 2, ring.StateFull),
	}
	for _, tc := range []struct {
		name   string
		shards []ring.Shard
		filled map[uint64][]uint64
		want   string
	}{
		{"a split whose targets are filled", split, map[uint64][]uint64{2: {1, 101}, 3: {1, 101}}, "[[2 full 3 full 1 leaving]]"},
		{"one of them is not", split, map[uint64][]uint64{2: {1, 101}}, "[]"},
		{"one of them is not by its source", split, map[uint64][]uint64{2: {1, 101}, 3: {101}}, "[]"},
		{"one of them is by too few", split, map[uint64][]uint64{2: {1}, 3: {1}}, "[]"},
		{"a merge", merge, map[uint64][]uint64{3: {1, 2, 101, 102}}, "[[3 full 1 leaving 2 leaving]]"},
		{"a merge without one of its sources", merge, map[uint64][]uint64{3: {1, 101, 102}}, "[]"},
		{
			"copies that were lost",
			[]ring.Shard{on(half[0], 1, ring.StateJoining), on(half[1], 2, ring.StateJoining)},
			map[uint64][]uint64{1: {101}, 2: {102}},
			"[[1 full] [2 full]]",
		},
	} {
		got := [][]string{}
		for _, group := range become(&meta.Database{Shards: tc.shards}, "a", tc.filled) {
			var texts []string
			for _, ch := range group {
				texts = append(texts, fmt.Sprint(ch.Copy, ch.To))
			}
			got = append(got, texts)
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, got, tc.want)
		}
	}
}
