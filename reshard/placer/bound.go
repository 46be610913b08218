package placer

// bound is the lower bound of the bytes that any plan has to move.
//
// A byte that moves leaves one node and comes to one. So at least these leave: all of nodes
// that are lost or drained, and of each other node what it has above the tolerance, or else what
// is misplaced (which may be the same bytes: the greater one counts). And at least these come:
// what nodes lack below the tolerance. The greater of the two sums has to move.
type bound struct {
	gone      int64 // from nodes that are lost or drained
	misplaced int64 // on other nodes
	above     int64
	below     int64
}

// newBound looks at the nodes before anything moves.
func (s *state) newBound() bound {
	var b bound
	for i := range s.nodes {
		if n := &s.nodes[i]; n.usable {
			b.above += max(n.bytes-n.high, 0)
			b.below += max(n.low-n.bytes, 0)
		}
	}
	return b
}

// leaves counts a copy that is not safe where it is and can go. Of two on one node either
// could go; they do not count.
func (b *bound) leaves(why Reason, bytes int64) {
	switch why {
	case Lost, Draining:
		b.gone += bytes
	case Placement, Zones:
		b.misplaced += bytes
	default:
	}
}

func (b *bound) bytes() int64 { return max(b.gone+max(b.above, b.misplaced), b.below) }
