package repair

import "time"

// state is what a node says about its copy of a range.
type state string

const (
	stateUnknown    state = ""           // it cannot be asked now
	stateComplete   state = "complete"   // it holds what it should
	stateIncomplete state = "incomplete" // it is being rebuilt itself
	stateAbsent     state = "absent"     // the copy is not there yet
	stateGone       state = "gone"       // the node is no member any more, and cannot come back
)

// patience is how long a copy that has got everything from one complete copy
// waits for what another one may have beyond that.
const patience = time.Minute

// standing is one of the other copies of a range, as a copy that is being
// rebuilt sees it.
type standing struct {
	state      state
	pushed     bool // as a complete copy it has pushed all that it had, after this one was made
	pushedPart bool // the same as an incomplete one

	asked time.Time // the last time; whole does not look at these
	heard bool      // it has answered, or could not
}

// whole decides whether a copy that was lost may answer again. order is the
// nodes of the range as the map has them, self among them; waited is the time
// since the first push came to its end.
//
// A complete copy has everything that was acknowledged on it. Each other
// complete copy that can be reached is waited for as well, because it may have
// taken a write that the first one missed; after that time it need not be
// waited for any longer: what it has comes all the same, later.
//
// When all copies of the range are being rebuilt, nobody has what was lost.
// Then the first of them in the map becomes whole once the others have brought
// it what they have, and the others follow it. A node that cannot be asked may
// have a complete copy, so as long as one is away nothing is decided: somebody
// has to bring it back, or to take it out of the cluster.
func whole(self string, order []string, others map[string]standing, waited time.Duration) bool {
	complete, pushed, waiting, unclear := 0, 0, 0, 0
	first := true // no other incomplete copy comes before this one
	seen := false // self
	for _, node := range order {
		if node == self {
			seen = true
			continue
		}
		switch o := others[node]; o.state {
		case stateComplete:
			complete++
			if o.pushed {
				pushed++
			}
		case stateIncomplete:
			first = first && seen
			if !o.pushedPart {
				waiting++
			}
		case stateUnknown, stateAbsent:
			unclear++
			if o.pushed {
				complete, pushed = complete+1, pushed+1 // it has done its part before it went away
			}
		case stateGone:
		}
	}
	if complete > 0 {
		return pushed == complete || pushed > 0 && waited >= patience
	}
	return unclear == 0 && first && (waiting == 0 || waited >= patience)
}
