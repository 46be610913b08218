package meta

import (
	"cmp"
	"slices"

	"github.com/hashicorp/raft"
)

// maxVoters bounds the nodes that vote: two of five may be away. Others hold
// the same state and can take a voter's place.
const maxVoters = 5

// votingMember is a member of the Raft group as seen by whoever decides who
// votes.
type votingMember struct {
	name     string
	zone     string
	voter    bool
	leader   bool
	stable   bool // healthy for long enough to vote
	failed   bool // unhealthy for so long that another one should vote
	draining bool
}

// voterChange is a change of who votes. When both are there, the demotion of a failed voter
// comes first, else the promotion does.
type voterChange struct {
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
// spread over zones. A voter that is failed is demoted only when a stable node can
// take its place, since otherwise its return is the only hope for a majority.
func decideVoters(all []votingMember) voterChange {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b votingMember) int { return cmp.Compare(a.name, b.name) })
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
	target := voterTarget(len(all))
	next := memberToPromote(all, votersIn)
	failed := failedVoter(all)
	switch {
	case voters > target && failed != "":
		return voterChange{demote: failed}
	case voters > target:
		return voterChange{demote: voterToDemote(all, votersIn, 0)}
	case next == nil:
		return voterChange{}
	case failed != "":
		return voterChange{promote: next.name, demote: failed}
	case voters < target:
		return voterChange{promote: next.name}
	}
	// The number is right; is the spread? Beyond maxVoters there is no room for
	// a promotion before the demotion.
	out := voterToDemote(all, votersIn, votersIn[next.zone]+2)
	switch {
	case out == "":
		return voterChange{}
	case voters < maxVoters:
		return voterChange{promote: next.name}
	}
	return voterChange{demote: out}
}

// memberToPromote returns the stable non-voter in the zone with the fewest voters.
func memberToPromote(all []votingMember, votersIn map[string]int) *votingMember {
	var best *votingMember
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

func failedVoter(all []votingMember) string {
	for _, c := range all {
		if c.voter && c.failed && !c.leader {
			return c.name
		}
	}
	return ""
}

// voterToDemote returns a voter of the zone with the most voters, if these are
// at least that many. The leader stays; a node that is to be emptied goes first.
func voterToDemote(all []votingMember, votersIn map[string]int, atLeast int) string {
	var best *votingMember
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

// majorityWithout reports whether the group can still decide without a node.
func majorityWithout(servers []raft.Server, without string, alive func(name string) bool) bool {
	rest := slices.DeleteFunc(slices.Clone(servers), func(s raft.Server) bool { return string(s.ID) == without })
	return majorityAlive(rest, alive)
}
