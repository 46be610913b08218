package meta

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"
)

// who builds candidates from texts like "a:z1 voter fit": the name, the zone,
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
				c.voter, c.leader, c.fit = true, true, true
			case word == "fit":
				c.fit = true
			case word == "dead":
				c.dead = true
			case word == "drain":
				c.draining = true
			}
		}
		out = append(out, c)
	}
	return out
}

func TestVoterTarget(t *testing.T) {
	for n, want := range []int{0, 1, 2, 3, 3, 5, 5, 5, 5} {
		if got := voterTarget(n); got != want {
			t.Errorf("of %d nodes %d vote, want %d", n, got, want)
		}
	}
}

func TestDecideVoters(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []candidate
		want suffrage
	}{
		{"alone", who("a L"), suffrage{}},
		{"the second one", who("a L", "b fit"), suffrage{promote: "b"}},
		{"not yet", who("a L", "b"), suffrage{}},
		{"being emptied", who("a L", "b fit drain"), suffrage{}},
		{"three", who("a L", "b V fit", "c fit"), suffrage{promote: "c"}},
		{"the fourth is spare", who("a L", "b V fit", "c V fit", "d fit"), suffrage{}},
		{"the fifth brings two", who("a L", "b V fit", "c V fit", "d fit", "e fit"), suffrage{promote: "d"}},
		{"five at most", who("a L", "b V fit", "c V fit", "d V fit", "e V fit", "f fit", "g fit"), suffrage{}},
		{"a dead one is replaced", who("a L", "b V dead", "c V fit", "d fit"), suffrage{promote: "d", demote: "b"}},
		{"not by one that is not fit", who("a L", "b V dead", "c V fit", "d"), suffrage{}},
		{"nobody can replace it", who("a L", "b V dead", "c V fit"), suffrage{}},
		{"one too many", who("a L", "b V fit", "c V fit", "d V fit"), suffrage{demote: "b"}},
		{"one too many, a dead one", who("a L", "b V fit", "c V dead", "d V fit"), suffrage{demote: "c"}},
		{"zones: the least crowded", who("a:1 L", "b:1 fit", "c:2 fit"), suffrage{promote: "c"}},
		{"zones: spread later", who("a:1 L", "b:1 V fit", "c:1 V fit", "d:2 fit"), suffrage{promote: "d"}},
		{"zones: then the crowd shrinks", who("a:1 L", "b:1 V fit", "c:1 V fit", "d:2 V fit"), suffrage{demote: "b"}},
		{"zones: good enough", who("a:1 L", "b:1 V fit", "c:2 V fit", "d:2 fit"), suffrage{}},
		{"zones: no room beyond five", who("a:1 L", "b:1 V fit", "c:1 V fit", "d:2 V fit", "e:2 V fit", "f:3 fit"), suffrage{demote: "b"}},
		{"zones: the leader stays", who("a:1 V fit", "b:1 L", "c:2 V fit", "d:2 V fit", "e:3 fit"), suffrage{promote: "e"}},
		{"the one to be emptied goes first", who("a L", "b V fit", "c V fit drain", "d V fit"), suffrage{demote: "c"}},
	} {
		if got := decideVoters(c.all); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Whatever the members are, taking the steps one by one comes to an end with
// the right number of voters, as long as enough nodes are fit; there are never
// more than maxVoters (one more for a moment below that), the leader stays, and
// a voter that is not dead never goes without need.
func TestDecideVotersSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "nodes")
		all := make([]candidate, n)
		for i := range all {
			all[i] = candidate{name: fmt.Sprintf("n%02d", i), zone: rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "zone")}
			switch rapid.IntRange(0, 3).Draw(t, "health") {
			case 0:
				all[i].dead = true
			case 1:
			default:
				all[i].fit = true
			}
			all[i].voter = i < maxVoters && rapid.Bool().Draw(t, "voter")
		}
		all[0] = candidate{name: "n00", zone: all[0].zone, voter: true, leader: true, fit: true}
		for step := 0; ; step++ {
			next := decideVoters(all)
			if next == (suffrage{}) {
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
					if c.voter || !c.fit {
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
		voters, spare, dead := 0, 0, 0
		for _, c := range all {
			switch {
			case c.voter:
				voters++
				if c.dead {
					dead++
				}
			case c.fit:
				spare++
			}
		}
		if voters > voterTarget(n) || (spare > 0 && (voters < voterTarget(n) || dead > 0)) {
			t.Fatalf("settled with %d voters, %d of them dead, and %d to spare: %+v", voters, dead, spare, all)
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
		if got := majorityAlive(servers, alive); got != c.all {
			t.Errorf("%v of all: %t", c.alive, got)
		}
		if got := outlives(servers, c.without, alive); got != c.rest {
			t.Errorf("%v without %s: %t", c.alive, c.without, got)
		}
	}
	if majorityAlive(nil, func(string) bool { return true }) {
		t.Error("a group of none has a majority")
	}
}
