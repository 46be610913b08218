package placer

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// maxCandidates is how many copies of about the same size are compared by their load.
const maxCandidates = 32

// closeEnough is how far the load of a copy may be off for no other one to be looked for.
const closeEnough = 0.2

// transfer is an amount of data that should go from one node to another.
type transfer struct {
	from, to int32
	want     int64   // bytes
	load     float64 // for each byte
}

// span is places in the list of a node, without end.
type span struct{ begin, end int32 }

// choose returns the copy that is best moved from one node to another, None when there is none.
// Of what the two want from each other the largest copies go first, for the fewest moves; the last
// one may be larger than what is left, if that does not do more harm than good.
func (b *balance) choose(from, to int32) int32 {
	d, r := &b.nodes[from], &b.nodes[to]
	t := transfer{from: from, to: to}
	switch above, below := d.bytes-d.high, r.low-r.bytes; {
	case above > 0 && below > 0:
		t.want = min(above, below)
	case above > 0:
		t.want = min(above, r.high-r.bytes)
	default:
		t.want = min(below, d.bytes-d.low)
	}
	t.load = b.density(&t)
	if c := b.moving(&t); c != None {
		return c
	}
	return b.staying(&t)
}

// density is the load for each byte that would bring the load of the node that is further beyond
// the tolerance to where its goal is when its bytes get there.
func (b *balance) density(t *transfer) float64 {
	if b.load == nil {
		return 0
	}
	above := func(n *node) float64 { return float64(n.load) - float64(b.perGoal*float64(n.goal)) }
	d, r := &b.nodes[t.from], &b.nodes[t.to]
	if by := d.beyond(d.bytes); by > r.beyond(r.bytes) {
		return max(above(d), 0) / float64(by)
	}
	return max(-above(r), 0) / float64(max(r.beyond(r.bytes), 1))
}

// helps reports whether moving so many bytes is worth it: both nodes are within the tolerance then, or
// what they are beyond it is less by at least half of what is moved.
func (b *balance) helps(t *transfer, bytes int64) bool {
	d, r := &b.nodes[t.from], &b.nodes[t.to]
	before := d.beyond(d.bytes) + r.beyond(r.bytes)
	after := d.beyond(d.bytes-bytes) + r.beyond(r.bytes+bytes)
	return after < before && (after == 0 || before-after >= bytes-bytes/2)
}

// may reports whether a copy may go to a node.
func (b *balance) may(c, to int32) bool {
	sh := b.shard[c]
	same := b.nodes[b.to[c]].zone == b.nodes[to].zone
	if !same && !b.free[b.class[sh]] || b.pinned(c) || b.occupied(sh, to, c) {
		return false
	}
	if b.overlap.any[sh] && b.othersMove(sh, c) {
		return false
	}
	if same {
		return true
	}
	if b.follows(c, b.nodes[to].zone) {
		return false
	}
	b.look(sh, c)
	return b.fits(sh, b.nodes[to].zone)
}

// follows reports whether a copy would come to a zone that another one of its shard leaves, or has left one
// that another comes to: it would share that zone until the other is done (P3).
func (b *balance) follows(c, zone int32) bool {
	for o, end := b.copies(b.shard[c]); o < end; o++ {
		from, to := b.leaves(o), b.zone(b.to[o])
		if o != c && b.to[o] != b.from[o] && from != to && (from == zone || to == b.leaves(c)) {
			return true
		}
	}
	return false
}

// othersMove reports whether a copy other than c moves of those that hold points of a shard. Where
// ranges overlap copies cannot take each other's place, so only one of them moves for the balance.
func (b *balance) othersMove(shard, c int32) bool {
	moves := func(sh int32) bool {
		for o, end := b.copies(sh); o < end; o++ {
			if o != c && b.to[o] != b.from[o] {
				return true
			}
		}
		return false
	}
	return moves(shard) || slices.ContainsFunc(b.overlap.around(shard), moves)
}

// moving returns a copy that comes to the node by this plan, and may as well go to the other one:
// that moves no byte more.
func (b *balance) moving(t *transfer) int32 {
	n := &b.nodes[t.from]
	n.incoming = slices.DeleteFunc(n.incoming, func(c int32) bool { return b.to[c] != t.from })
	best := int32(None)
	for _, c := range n.incoming {
		if best != None && b.bytes[c] <= b.bytes[best] || b.bytes[c] == 0 {
			continue
		}
		if (b.bytes[c] <= t.want || b.helps(t, b.bytes[c])) && b.may(c, t.to) {
			best = c
		}
	}
	return best
}

// staying returns a copy that did not move so far.
func (b *balance) staying(t *transfer) int32 {
	copies := b.copiesOf(t.from)
	at := sort.Search(len(copies), func(i int) bool { return b.bytes[copies[i]] <= t.want })
	if c := b.larger(t, at, t.want+b.slack); c != None {
		return c // nothing is left to do
	}
	if first := b.first(t, at); first < len(copies) {
		if b.load != nil {
			first = b.byLoad(t, first)
		}
		return copies[first]
	}
	return b.larger(t, at, math.MaxInt64)
}

// larger returns the smallest copy of those before a place that may go and does more good than
// harm, None when it has more than most bytes.
func (b *balance) larger(t *transfer, at int, most int64) int32 {
	copies := b.copiesOf(t.from)
	for i := at - 1; i >= 0 && b.bytes[copies[i]] <= most && b.helps(t, b.bytes[copies[i]]); i-- {
		if c := copies[i]; b.to[c] == t.from && b.may(c, t.to) {
			return c
		}
	}
	return None
}

// first returns the place of the first copy that may go, from a place on; after all when there is
// none with any bytes. What may not go will hardly be allowed to later on, so it is not looked at again.
func (b *balance) first(t *transfer, at int) int {
	copies, no := b.copiesOf(t.from), &b.refused[b.pairOf(t.from, t.to)]
	if at < int(no.begin) || at > int(no.end) {
		*no = span{int32(at), int32(at)}
	}
	i := b.next(t.from, int(no.end))
	for i < len(copies) && b.bytes[copies[i]] > 0 && !b.may(copies[i], t.to) {
		i = b.next(t.from, i+1)
	}
	if i < len(copies) && b.bytes[copies[i]] == 0 {
		i = len(copies)
	}
	no.end = int32(i)
	return i
}

// next returns the place of the first copy from a place on that its node still has. What has gone
// is passed over at once: skip says how far.
func (b *balance) next(n int32, i int) int {
	copies, skip := b.had[n], b.skip[n]
	end := i
	for end < len(copies) && b.to[copies[end]] != n {
		end = int(skip[end])
	}
	for i < end {
		i, skip[i] = int(skip[i]), int32(end)
	}
	return end
}

// byLoad returns the place of one of the copies from the first on that may go, the largest first: the
// largest of those that bring about as much load with their bytes as the transfer wants, or the one that
// comes closest. Of each size, a few are looked at.
func (b *balance) byLoad(t *transfer, first int) int {
	copies, best := b.copiesOf(t.from), first
	least := b.off(t, copies[first])
	for i := first; i < len(copies) && b.bytes[copies[i]] > 0 && least > closeEnough; {
		size := b.bytes[copies[i]]
		for seen := 0; i < len(copies) && b.bytes[copies[i]] > size/2 && seen < maxCandidates && least > closeEnough; seen++ {
			if off := b.off(t, copies[i]); off < least && b.to[copies[i]] == t.from && b.may(copies[i], t.to) {
				best, least = i, off
			}
			i = b.next(t.from, i+1)
		}
		if i < len(copies) && b.bytes[copies[i]] > size/2 {
			rest := copies[i:]
			i += sort.Search(len(rest), func(n int) bool { return b.bytes[rest[n]] <= size/2 })
		}
	}
	return best
}

// off is by how much of what is wanted the load of a copy for each byte is off.
func (b *balance) off(t *transfer, c int32) float64 {
	return math.Abs(float64(b.load[c])/float64(b.bytes[c])-t.load) / max(t.load, b.perGoal)
}

// copiesOf returns the copies that a node had at the beginning, the largest first.
func (b *balance) copiesOf(n int32) []int32 {
	if b.had == nil {
		b.had = b.byNode()
		b.skip = make([][]int32, len(b.had))
	}
	out := b.had[n]
	if !b.sorted[n] {
		b.sorted[n] = true
		b.skip[n] = make([]int32, len(out))
		for i := range b.skip[n] {
			b.skip[n][i] = int32(i + 1)
		}
		slices.SortFunc(out, func(x, y int32) int { return cmp.Or(cmp.Compare(b.bytes[y], b.bytes[x]), cmp.Compare(x, y)) })
	}
	return out
}

// byNode returns the copies that each node had at the beginning.
func (b *balance) byNode() [][]int32 {
	count := make([]int, len(b.nodes))
	for _, n := range b.from {
		if n != None {
			count[n]++
		}
	}
	out := make([][]int32, len(b.nodes))
	for n := range out {
		out[n] = make([]int32, 0, count[n])
	}
	for c, n := range b.from {
		if n != None {
			out[n] = append(out[n], int32(c))
		}
	}
	return out
}
