package voters

import (
	"cmp"
	"slices"

	"github.com/hashicorp/raft"
)

// maxVoters bounds the nodes that vote: two of five may be away. Others hold
// the same state and can take a voter's place.
const maxVoters = 5

// candidate is a member of the Raft group as the decision on who votes sees it.
type candidate struct {
	name     string
	zone     string
	voter    bool
	leader   bool
	stable   bool // healthy for long enough to vote
	failed   bool // unhealthy for so long that another one should vote
	draining bool
}

// change is a change of who votes. When both are there, the demotion of a failed voter
// comes first, else the promotion does.
type change struct {
	promote, demote string // names; empty: none
}

// Target returns how many nodes of n should vote: an odd number, since an
// even one does not outlive more losses than the odd one below it. Of two
// nodes both vote, so that the state is on two disks.
func Target(n int) int {
	if n <= 2 {
		return n
	}
	return min(n-1+n%2, maxVoters)
}

// decide returns the next step towards the right number of voters,
// spread over zones. A voter that is failed is demoted only when a stable node can
// take its place, since otherwise its return is the only hope for a majority.
func decide(all []candidate) change {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.name, b.name) })
	voters := 0
	votersIn := map[string]int{} // voters by zone that count for the spread
	for _, c := range all {
		if c.voter {
			voters++
			if !c.failed {
				votersIn[c.zone]++
			}
		}
	}
	target := Target(len(all))
	next := toPromote(all, votersIn)
	failed := failedVoter(all)
	switch {
	case voters > target && failed != "":
		return change{demote: failed}
	case voters > target:
		return change{demote: toDemote(all, votersIn, 0)}
	case next == nil:
		return change{}
	case failed != "":
		return change{promote: next.name, demote: failed}
	case voters < target:
		return change{promote: next.name}
	}
	// The number is right; is the spread? Beyond maxVoters there is no space for
	// a promotion before the demotion.
	out := toDemote(all, votersIn, votersIn[next.zone]+2)
	switch {
	case out == "":
		return change{}
	case voters < maxVoters:
		return change{promote: next.name}
	}
	return change{demote: out}
}

// toPromote returns the stable non-voter in the zone with the fewest voters.
func toPromote(all []candidate, votersIn map[string]int) *candidate {
	var best *candidate
	for i := range all {
		c := &all[i]
		if c.voter || !c.stable || c.draining {
			continue
		}
		if best == nil || votersIn[c.zone] < votersIn[best.zone] {
			best = c
		}
	}
	return best
}

func failedVoter(all []candidate) string {
	for _, c := range all {
		if c.voter && c.failed && !c.leader {
			return c.name
		}
	}
	return ""
}

// toDemote returns a voter of the zone with the most voters, if these are
// at least that many. The leader stays; a node that is to be emptied goes first.
func toDemote(all []candidate, votersIn map[string]int, atLeast int) string {
	var best *candidate
	for i := range all {
		c := &all[i]
		if !c.voter || c.leader || votersIn[c.zone] < atLeast {
			continue
		}
		if best == nil || votersIn[c.zone] > votersIn[best.zone] || (votersIn[c.zone] == votersIn[best.zone] && c.draining && !best.draining) {
			best = c
		}
	}
	if best == nil {
		return ""
	}
	return best.name
}

// Count returns how many servers vote.
func Count(servers []raft.Server) int {
	n := 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			n++
		}
	}
	return n
}

// MajorityAlive reports whether a majority of the voters is alive.
func MajorityAlive(servers []raft.Server, alive func(name string) bool) bool {
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

// MajorityWithout reports whether the group can still decide without a node.
func MajorityWithout(servers []raft.Server, without string, alive func(name string) bool) bool {
	rest := slices.DeleteFunc(slices.Clone(servers), func(s raft.Server) bool { return string(s.ID) == without })
	return MajorityAlive(rest, alive)
}
