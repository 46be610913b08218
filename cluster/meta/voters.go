package meta

import (
	"cmp"
	"slices"

	"github.com/hashicorp/raft"
)

// maxVoters bounds the nodes that vote: two of five may be away. Others hold
// the same state and can take a voter's place.
const maxVoters = 5

// candidate is a member of the Raft group as seen by whoever decides who votes.
type candidate struct {
	name     string
	zone     string
	voter    bool
	leader   bool
	fit      bool // healthy for long enough to vote
	dead     bool // unhealthy for so long that another one should vote
	draining bool
}

// changes of who votes. When both are there, the demotion of a dead voter
// comes first, else the promotion does.
type suffrage struct {
	promote, demote string // names; empty: nobody
}

// voterTarget returns how many nodes of n should vote: an odd number, since an
// even one does not outlive more losses than the odd one below it. Of two
// nodes both vote, so that the state is on two disks.
func voterTarget(n int) int {
	if n <= 2 {
		return n
	}
	return min(n-1+n%2, maxVoters)
}

// decideVoters returns the next step towards the right number of voters,
// spread over zones. A voter that is dead is demoted only when a fit node can
// take its place, since otherwise its return is the only hope for a majority.
func decideVoters(all []candidate) suffrage {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.name, b.name) })
	voters := 0
	crowd := map[string]int{} // voters by zone that count for the spread
	for _, c := range all {
		if c.voter {
			voters++
			if !c.dead {
				crowd[c.zone]++
			}
		}
	}
	target := voterTarget(len(all))
	next := bestCandidate(all, crowd)
	dead := deadVoter(all)
	switch {
	case voters > target && dead != "":
		return suffrage{demote: dead}
	case voters > target:
		return suffrage{demote: mostCrowded(all, crowd, 0)}
	case next == nil:
		return suffrage{}
	case dead != "":
		return suffrage{promote: next.name, demote: dead}
	case voters < target:
		return suffrage{promote: next.name}
	}
	// The number is right; is the spread? Beyond maxVoters there is no room for
	// a promotion before the demotion.
	out := mostCrowded(all, crowd, crowd[next.zone]+2)
	switch {
	case out == "":
		return suffrage{}
	case voters < maxVoters:
		return suffrage{promote: next.name}
	}
	return suffrage{demote: out}
}

// bestCandidate returns the fit non-voter in the zone with the fewest voters.
func bestCandidate(all []candidate, crowd map[string]int) *candidate {
	var best *candidate
	for i := range all {
		c := &all[i]
		if c.voter || !c.fit || c.draining {
			continue
		}
		if best == nil || crowd[c.zone] < crowd[best.zone] {
			best = c
		}
	}
	return best
}

func deadVoter(all []candidate) string {
	for _, c := range all {
		if c.voter && c.dead && !c.leader {
			return c.name
		}
	}
	return ""
}

// mostCrowded returns a voter of the zone with the most voters, if these are
// at least that many. The leader stays; a node that is to be emptied goes first.
func mostCrowded(all []candidate, crowd map[string]int, atLeast int) string {
	var best *candidate
	for i := range all {
		c := &all[i]
		if !c.voter || c.leader || crowd[c.zone] < atLeast {
			continue
		}
		if best == nil || crowd[c.zone] > crowd[best.zone] || (crowd[c.zone] == crowd[best.zone] && c.draining && !best.draining) {
			best = c
		}
	}
	if best == nil {
		return ""
	}
	return best.name
}

func countVoters(servers []raft.Server) int {
	n := 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	return n
}

// majorityAlive reports whether a majority of the voters is alive.
func majorityAlive(servers []raft.Server, alive func(name string) bool) bool {
	voters, up := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if alive(string(s.ID)) {
			up++
		}
	}
	return up > voters/2
}

// outlives reports whether the group can still decide without a node.
func outlives(servers []raft.Server, without string, alive func(name string) bool) bool {
	rest := slices.DeleteFunc(slices.Clone(servers), func(s raft.Server) bool { return string(s.ID) == without })
	return majorityAlive(rest, alive)
}
