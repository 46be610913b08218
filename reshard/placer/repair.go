package placer

import (
	"cmp"
	"math"
	"slices"
)

// repair moves what is not safe where it is.
type repair struct {
	*state
	bound *bound
	left  []Left
	again []urgent // found no place at first; other moves may have made space
	last  bool     // what finds no place now is left

	leavingOnly bool // Options
}

func (r *repair) run() {
	r.all(r.leaving())
	if !r.leavingOnly {
		r.misplacedCopies()
	}
	r.last = true
	for _, u := range r.again {
		if u.why == Placement || u.why == Zones {
			if _, bad := r.misplaced(u.copy); !bad {
				continue
			}
		}
		if r.place(u.copy, u.why) {
			r.bound.leaves(u.why, r.bytes[u.copy])
		}
	}
}

// urgent is a copy that has to go from its node.
type urgent struct {
	copy int32
	why  Reason
}

// leaving returns the copies that have to go from their nodes wherever that is. Those come first
// that have the smallest choice, by a placement rule; then those that are large against the tolerance, the
// largest first, for small ones fill up what is uneven then. Others are not sorted: an
// empty node would get all the large ones, and little load with them.
func (r *repair) leaving() []urgent {
	var out []urgent
	for c, n := range r.from {
		switch {
		case n == None || r.nodes[n].lost:
			out = append(out, urgent{int32(c), Lost})
		case !r.nodes[n].usable:
			out = append(out, urgent{int32(c), Draining})
		case r.together(int32(c)):
			out = append(out, urgent{int32(c), Together})
		}
	}
	ruled := func(u urgent) int {
		if r.classes[r.class[r.shard[u.copy]]].rule != nil {
			return 0
		}
		return 1
	}
	coarse := r.coarse()
	size := func(u urgent) int64 {
		if n := r.bytes[u.copy]; n >= coarse {
			return n
		}
		return 0
	}
	slices.SortFunc(out, func(a, b urgent) int {
		return cmp.Or(cmp.Compare(ruled(a), ruled(b)), cmp.Compare(size(b), size(a)), cmp.Compare(a.copy, b.copy))
	})
	return out
}

// coarse is from how many bytes a copy is large against the tolerance.
func (r *repair) coarse() int64 {
	least := int64(math.MaxInt64)
	for i := range r.nodes {
		if n := &r.nodes[i]; n.usable {
			least = min(least, n.high-n.goal)
		}
	}
	return least
}

// together reports whether a copy is not the first of its points on its node. One that is pinned
// comes before others: it cannot go.
func (r *repair) together(c int32) bool {
	sh, node := r.shard[c], r.from[c]
	before := func(o int32) bool {
		if p := r.pinned(o); p != r.pinned(c) {
			return p
		}
		return o < c
	}
	meets := func(other int32) bool {
		for o, end := r.copies(other); o < end; o++ {
			if o != c && r.from[o] == node && before(o) {
				return true
			}
		}
		return false
	}
	return meets(sh) || slices.ContainsFunc(r.overlap.around(sh), meets)
}

func (r *repair) all(copies []urgent) {
	for _, u := range copies {
		switch {
		case u.why == Together && r.pinned(u.copy): // both are: a split is at work, and knows
		case r.pinned(u.copy):
			r.leave(u.copy, Pinned, u.why)
		case u.why == Lost && r.sources(r.shard[u.copy]) == 0:
			r.leave(u.copy, NoSource, u.why)
		default:
			if r.place(u.copy, u.why) {
				r.bound.leaves(u.why, r.bytes[u.copy])
			}
		}
	}
}

// place sends a copy to the emptiest node that may have it, and reports whether there is one.
func (r *repair) place(c int32, why Reason) bool {
	r.look(r.shard[c], c)
	best := r.emptiest(c)
	if best == None && !r.last {
		r.again = append(r.again, urgent{c, why})
		return false
	}
	if best == None {
		r.leave(c, r.obstacle(c), why)
		return false
	}
	r.move(c, best, why)
	return true
}

// steps is in how many steps the tolerance is seen when nodes are compared by how full they are: of
// those in the same step the one with the least load is taken.
const steps = 5

// emptiest returns the node that a copy goes to, None when there is none.
func (r *repair) emptiest(c int32) int32 {
	sh, best := r.shard[c], int32(None)
	for i := range r.nodes {
		n := &r.nodes[i]
		if !n.usable || n.away || int32(i) == r.to[c] || best != None && !r.emptier(n, &r.nodes[best]) {
			continue
		}
		if r.fits(sh, n.zone) && !r.occupied(sh, int32(i), c) {
			best = int32(i)
		}
	}
	return best
}

// emptier reports whether a node takes a copy rather than another one.
func (r *repair) emptier(a, b *node) bool {
	if r.load == nil {
		return a.fill() < b.fill()
	}
	step := func(n *node) int64 { return n.bytes * steps / max(n.high-n.goal, 1) }
	relative := func(n *node) float64 { return float64(n.load) / float64(max(n.goal, 1)) }
	if a.goal == 0 || b.goal == 0 {
		return a.goal > b.goal
	}
	return cmp.Or(cmp.Compare(step(a), step(b)), cmp.Compare(relative(a), relative(b))) < 0
}

// obstacle says why there is no node for the copy of the survey.
func (r *repair) obstacle(c int32) Why {
	sh := r.shard[c]
	free := func(from []int32, n int32) bool { // without what moves of the plan keep occupied
		meets := func(other int32) bool {
			for o, end := r.copies(other); o < end; o++ {
				if o != c && from[o] == n {
					return true
				}
			}
			return false
		}
		return !meets(sh) && !slices.ContainsFunc(r.overlap.around(sh), meets)
	}
	why := TooFewNodes
	for i := range r.nodes {
		n := &r.nodes[i]
		switch {
		case !n.usable || int32(i) == r.to[c] || !free(r.to, int32(i)):
		case r.fits(sh, n.zone) && n.away:
			return NodeAway
		case r.fits(sh, n.zone):
			return NextPlan
		case r.classes[r.class[sh]].rule != nil:
			why = ZoneFull
		}
	}
	if rule := r.classes[r.class[sh]].rule; rule != nil {
		return ZoneFull
	}
	return why
}

func (r *repair) leave(c int32, why Why, reason Reason) {
	r.left = append(r.left, Left{Why: why, Reason: reason, Shard: r.shard[c], Node: r.from[c], Bytes: r.bytes[c]})
}

// misplacedCopies moves copies to the zones where they should be.
func (r *repair) misplacedCopies() {
	for sh := range r.in.Shards {
		if !r.separate(int32(sh)) {
			r.misplacedOf(int32(sh))
		}
	}
}

// misplacedOf moves copies of a shard, of those that are too many in a zone the one first whose node
// is fullest.
func (r *repair) misplacedOf(shard int32) {
	var stay []int32
	for {
		worst, why := int32(None), Reason(0)
		for c, end := r.copies(shard); c < end; c++ {
			if slices.Contains(stay, c) || r.to[c] == None || !r.nodes[r.to[c]].usable {
				continue
			}
			reason, bad := r.misplaced(c)
			if bad && (worst == None || r.nodes[r.to[c]].fill() > r.nodes[r.to[worst]].fill()) {
				worst, why = c, reason
			}
		}
		switch {
		case worst == None:
			return
		case r.pinned(worst):
			r.leave(worst, Pinned, why)
		case r.place(worst, why):
			r.bound.leaves(why, r.smallest(shard))
		}
		stay = append(stay, worst)
	}
}

// smallest returns the bytes of the smallest copy of a shard.
func (r *repair) smallest(shard int32) int64 {
	from, to := r.copies(shard)
	return slices.Min(r.bytes[from:to])
}
