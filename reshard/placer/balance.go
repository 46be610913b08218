package placer

// balance moves copies until each node is within the tolerance, or no move is left that
// helps.
type balance struct {
	*state
	slack   int64     // bytes that are not worth another move
	had     [][]int32 // of each node: the copies that it had at the beginning; made when asked for
	sorted  []bool    // of each node: whether these are, the largest first
	skip    [][]int32 // of each place in had: the next one that may still be there
	stuck   []bool    // of each node: nothing helps it
	blocked []bool    // of each pair of nodes: no copy may go from the first to the second
	refused []span    // of each pair: copies of the first, in had, that may not go to the second
	free    []bool    // of each class: its copies may be in one zone or another
	perGoal float64   // load for each byte of goal
}

func newBalance(s *state, tolerance float64) *balance {
	n := len(s.nodes)
	b := &balance{
		state: s, sorted: make([]bool, n), stuck: make([]bool, n),
		blocked: make([]bool, n*n), refused: make([]span, n*n), free: make([]bool, len(s.classes)),
	}
	for k := range s.classes {
		b.free[k] = !s.classes[k].fixed()
	}
	goal, load, usable := int64(0), int64(0), int64(0)
	for i := range s.nodes {
		if s.nodes[i].usable {
			goal += s.nodes[i].goal
			load += s.nodes[i].load
			usable++
		}
	}
	if usable > 0 {
		b.slack = int64(float64(goal/usable) * tolerance / 50)
	}
	if goal > 0 {
		b.perGoal = float64(load) / float64(goal)
	}
	return b
}

// maxRounds bounds how often nodes that nothing helped are tried again.
const maxRounds = 8

// run ends since each move makes the sum of what nodes are beyond the tolerance smaller by a
// whole number of bytes. What did not help a node may help it when others have changed, so it is
// tried again, a few times: it rarely does.
func (b *balance) run() {
	moved := true
	for round := 0; moved && round < maxRounds; round++ {
		moved = false
		clear(b.stuck)
		clear(b.blocked)
		clear(b.refused)
		for {
			n := b.worst()
			if n == None {
				break
			}
			if b.relieve(n) {
				moved = true
			} else {
				b.stuck[n] = true
			}
		}
	}
}

// worst returns the node that is furthest beyond the tolerance, relative to its goal; None when all are
// within, or cannot be helped.
func (b *balance) worst() int32 {
	worst, most := int32(None), 0.0
	for i := range b.nodes {
		n := &b.nodes[i]
		if !n.usable || n.away || b.stuck[i] {
			continue
		}
		if by := float64(n.beyond(n.bytes)) / float64(max(n.goal, 1)); by > most {
			worst, most = int32(i), by
		}
	}
	return worst
}

// relieve moves one copy from a node that is too full, or to one that is too empty, and reports
// whether there was one. The emptiest, or fullest, of the other nodes is tried first.
func (b *balance) relieve(n int32) bool {
	full := b.nodes[n].bytes > b.nodes[n].high
	for {
		var other int32
		if full {
			other = b.partner(func(o int32) bool { return b.blocked[b.pairOf(n, o)] }, n, -1)
		} else {
			other = b.partner(func(o int32) bool { return b.blocked[b.pairOf(o, n)] }, n, 1)
		}
		if other == None {
			return false
		}
		from, to := n, other
		if !full {
			from, to = other, n
		}
		if c := b.choose(from, to); c != None {
			b.move(c, to, Balance)
			return true
		}
		b.blocked[b.pairOf(from, to)] = true
	}
}

func (b *balance) pairOf(from, to int32) int { return int(from)*len(b.nodes) + int(to) }

// partner returns the fullest (sign 1) or emptiest (sign -1) node that is fuller, or emptier, than
// n and is not blocked; None when there is none.
func (b *balance) partner(blocked func(o int32) bool, n int32, sign float64) int32 {
	best, most := int32(None), sign*b.nodes[n].fill()
	for i := range b.nodes {
		if fill := sign * b.nodes[i].fill(); b.nodes[i].usable && !b.nodes[i].away && fill > most && !blocked(int32(i)) {
			best, most = int32(i), fill
		}
	}
	return best
}

// left returns the nodes that are not where they should be.
func (b *balance) left() []Left {
	var out []Left
	total, weight, why := 0.0, 0.0, TooCoarse
	for i := range b.nodes {
		if n := &b.nodes[i]; n.usable {
			if n.away && n.beyond(n.bytes) > 0 {
				why = NodeAway // which would take what others have too much, or give what they lack
			}
			total += float64(n.goal)
			weight += n.weight
		}
	}
	for i := range b.nodes {
		n := &b.nodes[i]
		l := Left{Reason: Balance, Shard: None, Node: int32(i)}
		if !n.usable {
			continue
		}
		if n.beyond(n.bytes) > 0 {
			l.Why, l.Bytes = why, n.bytes-min(max(n.bytes, n.low), n.high)
			out = append(out, l)
		}
		// The band around the goal is as wide as that around its share.
		share := int64(total / weight * n.weight)
		if by := share - min(max(share, n.low), n.high); by != 0 {
			l.Why, l.Bytes = ZoneShare, -by
			out = append(out, l)
		}
	}
	return out
}
