package ownership

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/meta"
)

// owners counts the slots of each node.
func owners(slots *meta.Slots) map[string]int {
	out := map[string]int{}
	for _, s := range slots {
		out[s.Node]++
	}
	return out
}

// carryOut does to slots what the group would.
func carryOut(slots *meta.Slots, moves []meta.SlotMove, index uint64) *meta.Slots {
	next := *slots
	for _, m := range moves {
		if next[m.Slot].Term == m.Term {
			next[m.Slot] = meta.Slot{Node: m.Node, Term: index}
		}
	}
	return &next
}

func drawTown(t *rapid.T) (*meta.Slots, []candidate) {
	var nodes []candidate
	names := []string{"", "stranger"}
	for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
		name := fmt.Sprintf("n%d", i)
		names = append(names, name)
		nodes = append(nodes, candidate{name, standing(rapid.IntRange(int(gone), int(settled)).Draw(t, "standing"))})
	}
	slots := &meta.Slots{}
	for i := range slots {
		slots[i] = meta.Slot{Node: rapid.SampledFrom(names).Draw(t, "owner"), Term: uint64(rapid.IntRange(1, 9).Draw(t, "term"))}
	}
	return slots, nodes
}

// fewest returns how few slots settled nodes can lose so that all have as many,
// when that many slots are there for them.
func fewest(has []int, all int) int {
	part, more := all/len(has), all%len(has)
	lost, above := 0, 0
	for _, n := range has {
		if n > part {
			lost += n - part
			above++
		}
	}
	return lost - min(more, above)
}

// For any slots and nodes: no slot is taken from a node and given to another in one step, no more
// than needed move, they move to the best nodes only, and a plan that is reached stays.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, nodes := drawTown(t)
		is := map[string]standing{}
		best := away
		for _, n := range nodes {
			is[n.name] = n.standing
			best = max(best, n.standing)
		}
		forbidden := rapid.IntRange(0, meta.SlotCount-1).Draw(t, "not free yet")
		moves := plan(slots, nodes, func(slot int) bool { return slot != forbidden })
		if best == away && len(moves) > 0 {
			t.Fatalf("nobody is there, and %v", moves)
		}
		lost := map[string]int{}
		for i, m := range moves {
			was := slots[m.Slot]
			switch {
			case slices.ContainsFunc(moves[:i], func(o meta.SlotMove) bool { return o.Slot == m.Slot }):
				t.Fatalf("two moves of slot %d", m.Slot)
			case m.Term != was.Term:
				t.Fatalf("%v is not about %v", m, was)
			case m.Node == "":
				lost[was.Node]++
			case was.Node != "" || m.Slot == forbidden || is[m.Node] != best:
				t.Fatalf("%v of %v, to one that is %d", m, was, is[m.Node])
			}
		}
		if best == away {
			return
		}
		var settledHave []int
		forSettled, balanced := 0, 0
		for name, n := range owners(slots) {
			switch {
			case name == "":
				forSettled += n
			case is[name] == gone, is[name] == draining && best > draining:
				forSettled += n
				if lost[name] != n {
					t.Fatalf("%s keeps %d of %d slots", name, n-lost[name], n)
				}
			case is[name] == settled:
			case lost[name] > 0:
				t.Fatalf("%s lost slots, and is %d", name, is[name])
			}
		}
		for _, n := range nodes {
			if n.standing == settled {
				have := owners(slots)[n.name]
				settledHave = append(settledHave, have)
				forSettled += have
				balanced += lost[n.name]
			}
		}
		if len(settledHave) > 0 && balanced != fewest(settledHave, forSettled) {
			t.Fatalf("settled nodes lost %d slots, %d would do", balanced, fewest(settledHave, forSettled))
		}
		reachesRest(t, slots, nodes, best)
	})
}

// reachesRest carries plans out until nothing moves, which is after three of
// them, and looks at what that is.
func reachesRest(t *rapid.T, slots *meta.Slots, nodes []candidate, best standing) {
	always := func(int) bool { return true }
	for index := range uint64(3) {
		slots = carryOut(slots, plan(slots, nodes, always), 100+index)
	}
	if again := plan(slots, nodes, always); len(again) > 0 {
		t.Fatalf("still moves: %v", again)
	}
	has := owners(slots)
	if has[""]+has["stranger"] > 0 {
		t.Fatalf("left over: %v", has)
	}
	least, most := meta.SlotCount, 0
	for _, n := range nodes {
		switch {
		case n.standing == gone && has[n.name] > 0, n.standing == draining && best > draining && has[n.name] > 0:
			t.Fatalf("%s is %d and has %d slots", n.name, n.standing, has[n.name])
		case n.standing == settled:
			least, most = min(least, has[n.name]), max(most, has[n.name])
		}
	}
	if best == settled && most-least > 1 {
		t.Fatalf("not even: %v", has)
	}
}

// The slot of a job is the same for every version of the program.
func TestSlot(t *testing.T) {
	for _, c := range []struct {
		parts []string
		want  int
	}{
		{[]string{"_replicator", "a"}, 0},
		{[]string{"_replicator", "b"}, 25},
		{[]string{"_replicato", "ra"}, 40},
		{[]string{"3ee7a8b9ce5b8ab3a2e6ea0e1bbdc0ad+continuous"}, 62},
	} {
		if got := Slot(c.parts...); got != c.want {
			t.Errorf("%q: slot %d, want %d", c.parts, got, c.want)
		}
	}
	used := map[int]int{}
	for i := range 64 * 100 {
		used[Slot("_replicator", fmt.Sprintf("job-%d", i))]++
	}
	for slot := range meta.SlotCount {
		if n := used[slot]; n < 50 || n > 150 {
			t.Errorf("slot %d has %d of 6400 jobs", slot, n)
		}
	}
}
