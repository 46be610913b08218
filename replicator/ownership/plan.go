package ownership

import (
	"cmp"
	"slices"

	"divan/cluster/meta"
)

// standing is the leader's opinion of a node.
type standing uint8

const (
	gone     standing = iota // for so long that others get its slots
	away                     // for a moment: it keeps its slots and gets none
	draining                 // it is to be emptied
	fresh                    // it is here, since a moment ago
	settled                  // it is here
)

// candidate is a node as the leader sees it.
type candidate struct {
	name     string
	standing standing
}

// taker is a node that gets slots.
type taker struct {
	name string
	has  []int
}

// plan returns which slots are to change hands. free says of a vacant slot whether it may be given
// to a node now.
//
// Slots are taken from nodes that are not among the candidates or gone, and from draining ones, as
// long as another node can take them. They are given to the best nodes there are: settled ones,
// else fresh ones, else draining ones, always to the node that has the fewest. Settled nodes that
// have more than their part lose the rest, which are as few slots as can be.
func plan(slots *meta.Slots, nodes []candidate, free func(slot int) bool) []meta.SlotMove {
	best := away
	standings := make(map[string]standing, len(nodes))
	for _, n := range nodes {
		standings[n.name] = n.standing
		best = max(best, n.standing)
	}
	if best == away {
		return nil
	}
	var takers []*taker
	for _, n := range nodes {
		if n.standing == best {
			takers = append(takers, &taker{name: n.name})
		}
	}
	var moves []meta.SlotMove
	move := func(slot int, to string) {
		moves = append(moves, meta.SlotMove{Slot: slot, Node: to, Term: slots[slot].Term})
	}
	vacant := 0
	for i, s := range slots {
		at := slices.IndexFunc(takers, func(t *taker) bool { return t.name == s.Node })
		switch is := standings[s.Node]; {
		case at >= 0:
			takers[at].has = append(takers[at].has, i)
		case s.Node == "":
			vacant++
		case is == gone, is == draining && best > draining:
			vacant++
			move(i, "")
		}
	}
	if best == settled {
		for _, slot := range surplus(takers, vacant) {
			move(slot, "")
		}
	}
	for i, s := range slots {
		if s.Node == "" && free(i) {
			to := slices.MinFunc(takers, fewer)
			to.has = append(to.has, i)
			move(i, to.name)
		}
	}
	return moves
}

// surplus takes from each node what it has beyond its part of all their slots
// and the vacant ones. Of the nodes whose part is one more than that of others,
// those come first that have the most.
func surplus(takers []*taker, vacant int) []int {
	all := vacant
	for _, t := range takers {
		all += len(t.has)
	}
	part, more := all/len(takers), all%len(takers)
	slices.SortFunc(takers, func(a, b *taker) int { return fewer(b, a) })
	var out []int
	for i, t := range takers {
		keep := part
		if i < more {
			keep++
		}
		keep = min(keep, len(t.has))
		out = append(out, t.has[keep:]...)
		t.has = t.has[:keep]
	}
	return out
}

func fewer(a, b *taker) int {
	return cmp.Or(cmp.Compare(len(a.has), len(b.has)), cmp.Compare(a.name, b.name))
}
