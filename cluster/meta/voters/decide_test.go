package voters

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// who builds candidates from texts like "a:z1 voter stable": the name, the zone,
// then what is true of it.
func who(texts ...string) []candidate {
	var out []candidate
	for _, text := range texts {
		var c candidate
		for i, word := range strings.Fields(text) {
			switch {
			case i == 0:
				c.name, c.zone, _ = strings.Cut(word, ":")
			case word == "V":
				c.voter = true
			case word == "L":
				c.voter, c.leader, c.stable = true, true, true
			case word == "stable":
				c.stable = true
			case word == "failed":
				c.failed = true
			case word == "drain":
				c.draining = true
			}
		}
		out = append(out, c)
	}
	return out
}

func TestTarget(t *testing.T) {
	for n, want := range []int{0, 1, 2, 3, 3, 5, 5, 5, 5} {
		if got := Target(n); got != want {
			t.Errorf("of %d nodes %d vote, want %d", n, got, want)
		}
	}
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []candidate
		want change
	}{
		{"alone", who("a L"), change{}},
		{"the second one", who("a L", "b stable"), change{promote: "b"}},
		{"not yet", who("a L", "b"), change{}},
		{"being emptied", who("a L", "b stable drain"), change{}},
		{"three", who("a L", "b V stable", "c stable"), change{promote: "c"}},
		{"the fourth is spare", who("a L", "b V stable", "c V stable", "d stable"), change{}},
		{"the fifth brings two", who("a L", "b V stable", "c V stable", "d stable", "e stable"), change{promote: "d"}},
		{"five at most", who("a L", "b V stable", "c V stable", "d V stable", "e V stable", "f stable", "g stable"), change{}},
		{"a failed one is replaced", who("a L", "b V failed", "c V stable", "d stable"), change{promote: "d", demote: "b"}},
		{"not by one that is not stable", who("a L", "b V failed", "c V stable", "d"), change{}},
		{"nobody can replace it", who("a L", "b V failed", "c V stable"), change{}},
		{"one too many", who("a L", "b V stable", "c V stable", "d V stable"), change{demote: "b"}},
		{"one too many, a failed one", who("a L", "b V stable", "c V failed", "d V stable"), change{demote: "c"}},
		{"zones: the least crowded", who("a:1 L", "b:1 stable", "c:2 stable"), change{promote: "c"}},
		{"zones: spread later", who("a:1 L", "b:1 V stable", "c:1 V stable", "d:2 stable"), change{promote: "d"}},
		{"zones: then one of many goes", who("a:1 L", "b:1 V stable", "c:1 V stable", "d:2 V stable"), change{demote: "b"}},
		{"zones: good enough", who("a:1 L", "b:1 V stable", "c:2 V stable", "d:2 stable"), change{}},
		{"zones: no space beyond five", who("a:1 L", "b:1 V stable", "c:1 V stable", "d:2 V stable", "e:2 V stable", "f:3 stable"), change{demote: "b"}},
		{"zones: the leader stays", who("a:1 V stable", "b:1 L", "c:2 V stable", "d:2 V stable", "e:3 stable"), change{promote: "e"}},
		{"the one to be emptied goes first", who("a L", "b V stable", "c V stable drain", "d V stable"), change{demote: "c"}},
	} {
		if got := decide(c.all); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// For any members, taking the steps one by one comes to an end with the right number of voters, as
// long as enough nodes are stable; there are never more than maxVoters (one more for a moment below
// that), the leader stays, and a voter that is not failed never goes without need.
func TestDecideSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		all := make([]candidate, n)
		for i := range all {
			all[i] = candidate{name: fmt.Sprintf("n%02d", i), zone: rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "zone")}
			switch rapid.IntRange(0, 3).Draw(t, "health") {
			case 0:
				all[i].failed = true
			case 1:
			default:
				all[i].stable = true
			}
			all[i].voter = i < maxVoters && rapid.Bool().Draw(t, "voter")
		}
		all[0] = candidate{name: "n00", zone: all[0].zone, voter: true, leader: true, stable: true}
		for step := 0; ; step++ {
			next := decide(all)
			if next == (change{}) {
				break
			}
			if step > 4*maxVoters {
				t.Fatalf("does not settle: %+v of %+v", next, all)
			}
			voters := 0
			for i := range all {
				c := &all[i]
				switch c.name {
				case next.demote:
					if c.leader || !c.voter {
						t.Fatalf("demotes %+v", *c)
					}
					c.voter = false
				case next.promote:
					if c.voter || !c.stable {
						t.Fatalf("promotes %+v", *c)
					}
					c.voter = true
				}
				if c.voter {
					voters++
				}
			}
			if voters > maxVoters {
				t.Fatalf("%d voters", voters)
			}
		}
		voters, spare, failed := 0, 0, 0
		for _, c := range all {
			switch {
			case c.voter:
				voters++
				if c.failed {
					failed++
				}
			case c.stable:
				spare++
			}
		}
		if voters > Target(n) || (spare > 0 && (voters < Target(n) || failed > 0)) {
			t.Fatalf("settled with %d voters, %d of them failed, and %d to spare: %+v", voters, failed, spare, all)
		}
	})
}

func TestMajorityAlive(t *testing.T) {
	servers := []raft.Server{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d", Suffrage: raft.Nonvoter}}
	for _, c := range []struct {
		alive   []string
		without string
		all     bool
		rest    bool
	}{
		{[]string{"a", "b", "c"}, "a", true, true},
		{[]string{"a", "b"}, "c", true, true},
		{[]string{"a", "b"}, "a", true, false},
		{[]string{"a", "d"}, "c", false, false},
		{nil, "a", false, false},
	} {
		alive := func(name string) bool { return slices.Contains(c.alive, name) }
		if got := MajorityAlive(servers, alive); got != c.all {
			t.Errorf("%v of all: %t", c.alive, got)
		}
		if got := MajorityWithout(servers, c.without, alive); got != c.rest {
			t.Errorf("%v without %s: %t", c.alive, c.without, got)
		}
	}
	if MajorityAlive(nil, func(string) bool { return true }) {
		t.Error("a group of none has a majority")
	}
}
