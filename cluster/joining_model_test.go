package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/fanout"
	"divan/cluster/quorum"
	"divan/cluster/routing"
	"divan/shard/ring"
)

// quorumModel is one point of the ring, in the first half of it, whose copies change while it is
// written to and read by coordinators of any map: the rules of ring, quorum and replica without
// what carries them. Copies are of the whole ring or of its first half; those of the second half
// are twins of these, for which the same is done.
// docs/decisions/0039 and 0040 argue that no acknowledged write can be missed; this looks for a
// case in which one is.
type quorumModel struct {
	maps    [][]ring.Shard         // by generation
	index   uint64                 // of the last command
	joined  map[uint64]int         // generation in which a copy joined
	applied map[string]int         // generation that a node has applied
	stores  map[uint64]*modelSet   // what copies have, by id; nil: it was lost
	filled  map[uint64][]modelFill // by joining copy: those that have filled it
	full    []int                  // by generation: that in which the set of full copies changed last
	writes  []*modelWrite
	flying  []*modelCall
	pushes  []*modelPush
	added   map[uint64]bool // copies that take no other one's place
	left    int             // copies that have left
	moves   int             // of them those for which others came on other nodes
	gone    map[string]bool // nodes of which copies were replaced one by one
	singles int             // replacements of what overlaps with one copy only
}

type modelSet struct {
	node   string
	writes map[int]bool
	handed map[uint64]bool // if it leaves: full copies that have got all it had
}

// modelWrite is a write of a coordinator that knows the maps up to some generation.
type modelWrite struct {
	generation int
	count      quorum.Write
	acked      bool
	asked      map[uint64]bool
}

// modelCall is a write that a copy has let in and not done yet.
type modelCall struct {
	write int
	copy  ring.Copy
}

// modelFill says that a copy has filled another one, when its node knew maps up to some generation.
type modelFill struct {
	by         uint64
	generation int
}

// modelPush is a push on its way. It reads what the source has when all that was flying at
// its beginning has landed.
type modelPush struct {
	source, target ring.Copy
	before         []*modelCall
	generation     int          // that the source's node knows
	read           map[int]bool // nil: not read yet
}

func (m *quorumModel) now() []ring.Shard { return m.maps[len(m.maps)-1] }

// atPoint returns the copies that hold the point.
func atPoint(shards []ring.Shard) []ring.Copy {
	var out []ring.Copy
	for _, s := range shards {
		if s.Begin == 0 {
			out = append(out, s.Copies...)
		}
	}
	return out
}

// inState returns those of some copies that are in one of some states.
func inState(copies []ring.Copy, states ...ring.State) []ring.Copy {
	return slices.DeleteFunc(slices.Clone(copies), func(c ring.Copy) bool { return !slices.Contains(states, c.State) })
}

func fullOf(shards []ring.Shard) []ring.Copy { return inState(atPoint(shards), ring.StateFull) }

// used returns the copies that coordinators know.
func used(shards []ring.Shard) []ring.Copy {
	return inState(atPoint(shards), ring.StateFull, ring.StateJoining)
}

// twin returns the copy of the other half that belongs to one of the first; 0: it is of the
// whole ring.
func (m *quorumModel) twin(id uint64) uint64 {
	for _, s := range m.now() {
		for _, c := range s.Copies {
			if c.ID != id || s.Range != ring.Split(2)[0] {
				continue
			}
			for _, o := range m.now() {
				if twin, ok := o.CopyOn(c.Node); ok && o.Range == ring.Split(2)[1] {
					return twin.ID
				}
			}
		}
	}
	return 0
}

// shardOf returns the shard of a copy.
func (m *quorumModel) shardOf(id uint64) *ring.Shard {
	for i, s := range m.now() {
		if slices.ContainsFunc(s.Copies, func(c ring.Copy) bool { return c.ID == id }) {
			return &m.now()[i]
		}
	}
	return &ring.Shard{}
}

// rangeOf returns the range of a copy.
func (m *quorumModel) rangeOf(id uint64) ring.Range { return m.shardOf(id).Range }

// apply makes changes, of the twins as well, and reports whether all of the copies at the point
// that were to change have.
func (m *quorumModel) apply(changes ...ring.Change) bool {
	for _, ch := range slices.Clone(changes) {
		twin := m.twin(ch.Copy)
		if twin == 0 {
			continue
		}
		both := ring.Change{Copy: twin, To: ch.To}
		for _, id := range ch.Filled {
			both.Filled = append(both.Filled, cmp.Or(m.twin(id), id))
		}
		changes = append(changes, both)
	}
	shards, ok := ring.Apply(m.now(), changes, m.ids())
	m.change(shards, ok)
	return ok
}

func (m *quorumModel) change(shards []ring.Shard, ok bool) {
	if !ok {
		return
	}
	last := 0
	if n := len(m.maps); n > 0 {
		if last = m.full[n-1]; ring.FullChanged(m.now(), shards) {
			last = n
		}
	}
	m.maps, m.full = append(m.maps, shards), append(m.full, last)
	for _, c := range atPoint(shards) {
		if _, known := m.stores[c.ID]; !known {
			m.stores[c.ID] = &modelSet{c.Node, map[int]bool{}, map[uint64]bool{}}
			m.joined[c.ID] = len(m.maps) - 1
		}
	}
}

func (m *quorumModel) ids() *ring.NewCopies {
	m.index++
	return ring.IDsOf(m.index)
}

func newQuorumModel(n int) *quorumModel {
	m := &quorumModel{
		joined: map[uint64]int{}, applied: map[string]int{}, stores: map[uint64]*modelSet{}, filled: map[uint64][]modelFill{}, added: map[uint64]bool{}, gone: map[string]bool{},
	}
	s := ring.Shard{Range: ring.Full()}
	for i := range n {
		s.Copies = append(s.Copies, ring.Copy{Node: fmt.Sprint("n", i)})
	}
	m.change(ring.Identify([]ring.Shard{s}, m.ids()), true)
	return m
}

// step does one thing that may happen.
func (m *quorumModel) step(t *rapid.T) {
	copies := atPoint(m.now())
	one := rapid.SampledFrom(copies).Draw(t, "copy")
	what := rapid.IntRange(0, 16).Draw(t, "what")
	if len(fullOf(m.now())) < len(used(m.now())) && rapid.IntRange(0, 2).Draw(t, "fill") > 0 {
		what = rapid.SampledFrom([]int{5, 10, 10, 10, 11}).Draw(t, "instead") // else hardly a copy is ever full again
	}
	switch what {
	case 0, 1: // a coordinator begins a write
		g := rapid.IntRange(0, len(m.maps)-1).Draw(t, "generation")
		s := m.route(g)
		w := &modelWrite{generation: g, count: quorum.NewWrite(len(s.Copies), len(s.Joining), 0), asked: map[uint64]bool{}}
		if s.PerNode != nil {
			w.count.OnNodes(s.PerNode)
		}
		m.writes = append(m.writes, w)
	case 2, 3, 4: // a copy lets a write in
		if len(m.writes) > 0 {
			m.letIn(t)
		}
	case 5, 6: // a copy has done it
		if len(m.flying) > 0 {
			m.land(rapid.IntRange(0, len(m.flying)-1).Draw(t, "call"))
		}
	case 7: // a node hears of a change
		nodes := slices.Sorted(maps.Keys(m.applied))
		if len(nodes) == 0 {
			nodes = []string{one.Node}
		}
		m.hear(rapid.SampledFrom(append(nodes, one.Node)).Draw(t, "node"), rapid.IntRange(0, len(m.maps)-1).Draw(t, "generation"))
	case 8: // a disk is lost; as many at a time as n copies bear
		_, moved := m.shardOf(one.ID).Heir(one.Node)
		second := one.State == ring.StateLeaving && moved && len(inState(copies, ring.StateJoining)) > 0
		if one.State != ring.StateFull && !second || ring.Dispensable(m.now(), m.rangeOf(one.ID), one) {
			if s := m.stores[one.ID]; s != nil {
				m.stores[one.ID] = nil
			}
			m.flying = slices.DeleteFunc(m.flying, func(c *modelCall) bool { return c.copy.ID == one.ID })
			m.apply(ring.Change{Copy: one.ID, To: ring.StateJoining})
		}
	case 9: // a node is replaced
		by := fmt.Sprint("m", m.index)
		if at := slices.IndexFunc(copies, func(c ring.Copy) bool { return c.Instead == one.Node }); at >= 0 {
			by = copies[at].Node // who comes in its place has it already
		} else if one.Instead != "" && rapid.Bool().Draw(t, "back") {
			by = one.Instead // who leaves for it
		}
		if rapid.Bool().Draw(t, "one") { // only what overlaps with one of its copies
			if next, ok := ring.Add(m.now(), []ring.Addition{{Range: m.rangeOf(one.ID), Node: by, Instead: one.Node, Lost: true}}, m.ids()); ok {
				m.change(next, ok)
				m.gone[one.Node] = true // though what does not overlap is in the map still
				m.singles++
			}
		} else if ring.NodeDispensable(m.now(), one.Node) {
			m.change(ring.Replace(m.now(), one.Node, fmt.Sprint("m", m.index), m.ids()))
		}
	case 10: // a push begins, reads, or ends
		m.push(t, one)
	case 11: // copies are proposed to be full
		var changes []ring.Change
		for _, c := range copies {
			if c.State != ring.StateJoining {
				continue
			}
			become := ring.Change{Copy: c.ID, To: ring.StateFull}
			for _, f := range m.filled[c.ID] {
				if f.generation >= m.full[len(m.full)-1] {
					become.Filled = append(become.Filled, f.by)
				}
			}
			at := slices.IndexFunc(copies, func(o ring.Copy) bool { return o.State == ring.StateFull && o.Node == c.Node })
			if at >= 0 {
				m.apply(become, ring.Change{Copy: copies[at].ID, To: ring.StateLeaving})
			} else {
				changes = append(changes, become)
			}
		}
		m.apply(changes...)
	case 12: // a copy is to be split or merged
		m.add(one)
	case 13: // a copy that is made joins
		if one.State == ring.StateCopying {
			m.apply(ring.Change{Copy: one.ID, To: ring.StateJoining})
		}
	case 14: // a copy goes
		m.goes(t, one)
	case 15: // a copy is to be moved
		m.move(one)
	case 16: // a copy leaves that was moved, as far as its node knows
		m.moved(one)
	}
}

func (m *quorumModel) moved(one ring.Copy) {
	known := m.maps[m.applied[one.Node]]
	at := slices.IndexFunc(known, func(s ring.Shard) bool { return s.Range == m.rangeOf(one.ID) })
	if at < 0 {
		return
	}
	if ch, ok := ring.Moved(known, &known[at], one.Node); ok && ch.Copy == one.ID && m.apply(ch) {
		m.moves++
	}
}

// move adds a copy on another node that comes instead of one.
func (m *quorumModel) move(from ring.Copy) {
	to := fmt.Sprint("t", m.index)
	adds := []ring.Addition{{Range: m.rangeOf(from.ID), Node: to, Instead: from.Node}}
	if adds[0].Range != ring.Full() {
		adds = append(adds, ring.Addition{Range: ring.Split(2)[1], Node: to, Instead: from.Node})
	}
	m.change(ring.Add(m.now(), adds, m.ids()))
	for _, c := range atPoint(m.now()) {
		if c.Node == to {
			m.added[c.ID] = true
		}
	}
}

// add adds copies of the other size on the node of a copy, with what that one has at any
// moment.
func (m *quorumModel) add(from ring.Copy) {
	at := []ring.Range{ring.Full()}
	if m.rangeOf(from.ID) == ring.Full() {
		at = ring.Split(2)
	}
	var adds []ring.Addition
	for _, r := range at {
		adds = append(adds, ring.Addition{Range: r, Node: from.Node})
	}
	before := len(m.maps)
	m.change(ring.Add(m.now(), adds, m.ids()))
	for _, c := range atPoint(m.now()) {
		if len(m.maps) == before || m.joined[c.ID] != len(m.maps)-1 {
			continue
		}
		m.added[c.ID] = true
		if source := m.stores[from.ID]; source != nil {
			maps.Copy(m.stores[c.ID].writes, source.writes)
		}
	}
}

// goes takes a copy out of the map when it may be: one that leaves when it has handed over what it
// alone had, of which nothing is lost then.
func (m *quorumModel) goes(t *rapid.T, one ring.Copy) {
	s := m.stores[one.ID]
	if one.State == ring.StateJoining && !m.added[one.ID] && !slices.ContainsFunc(fullOf(m.now()), func(c ring.Copy) bool { return c.Node == one.Node }) {
		return // it has the place of one that had what a majority had to have
	}
	if one.State == ring.StateLeaving && s != nil {
		heir, moved := m.shardOf(one.ID).Heir(one.Node)
		to := slices.IndexFunc(fullOf(m.now()), func(c ring.Copy) bool { return s.handed[c.ID] && (!moved || c.ID == heir.ID) })
		if to < 0 {
			return
		}
		for i := range s.writes {
			if heir := m.stores[fullOf(m.now())[to].ID]; heir != nil && !heir.writes[i] && !m.inFlight(one.ID) {
				t.Fatalf("write %d was on copy %d that has left, and is not on %d", i, one.ID, fullOf(m.now())[to].ID)
			}
		}
	}
	changes := []ring.Change{{Copy: one.ID, To: ring.StateGone}}
	if one.State == ring.StateLeaving {
		changes = ring.Left(m.shardOf(one.ID), one.Node, s == nil)
	}
	if m.apply(changes...) && one.State == ring.StateLeaving {
		m.left++
	}
}

func (m *quorumModel) inFlight(id uint64) bool {
	return slices.ContainsFunc(m.flying, func(c *modelCall) bool { return c.copy.ID == id })
}

func (m *quorumModel) hear(node string, generation int) {
	m.applied[node] = max(m.applied[node], generation)
}

func (m *quorumModel) letIn(t *rapid.T) {
	i := rapid.IntRange(max(0, len(m.writes)-4), len(m.writes)-1).Draw(t, "write")
	w := m.writes[i]
	c := rapid.SampledFrom(used(m.maps[w.generation])).Draw(t, "at")
	if m.stores[c.ID] == nil || w.asked[c.ID] || m.applied[c.Node] > w.generation {
		return // refused
	}
	m.hear(c.Node, w.generation)
	w.asked[c.ID] = true
	m.flying = append(m.flying, &modelCall{i, c})
}

func (m *quorumModel) land(at int) {
	c := m.flying[at]
	m.flying = slices.Delete(m.flying, at, at+1)
	s := m.stores[c.copy.ID]
	if s == nil {
		return
	}
	s.writes[c.write] = true
	w := m.writes[c.write]
	by := m.route(w.generation)
	one := slices.IndexFunc(by.All(), func(t ring.Replica) bool { return t.ID == c.copy.ID })
	w.count.Follow(by.NodeOf(one), c.copy.State == ring.StateJoining, nil)
	o, _ := w.count.Outcome()
	w.acked = o == quorum.Committed
}

// route returns what coordinators of a map make of it.
func (m *quorumModel) route(generation int) *routing.Route {
	var all []ring.Replica
	for _, c := range used(m.maps[generation]) {
		all = append(all, ring.Replica{Range: ring.Full(), Copy: ring.Copy{Node: c.Node, ID: c.ID, State: c.State, Instead: c.Instead}})
	}
	return &routing.Routes(all, "")[0]
}

func (m *quorumModel) push(t *rapid.T, source ring.Copy) {
	if len(m.pushes) > 0 && rapid.IntRange(0, 3).Draw(t, "goes on") > 0 {
		i := rapid.IntRange(0, len(m.pushes)-1).Draw(t, "push")
		p := m.pushes[i]
		from, to := m.stores[p.source.ID], m.stores[p.target.ID]
		switch {
		case from == nil || to == nil:
			m.pushes = slices.Delete(m.pushes, i, i+1)
		case p.read == nil && !slices.ContainsFunc(p.before, func(c *modelCall) bool { return slices.Contains(m.flying, c) }):
			p.read = maps.Clone(from.writes)
		case p.read != nil:
			maps.Copy(to.writes, p.read)
			if p.source.State == ring.StateLeaving {
				from.handed[p.target.ID] = true
			} else {
				m.filled[p.target.ID] = append(m.filled[p.target.ID], modelFill{p.source.ID, p.generation})
			}
			m.pushes = slices.Delete(m.pushes, i, i+1)
		}
		return
	}
	if rapid.Bool().Draw(t, "hears") {
		m.hear(source.Node, len(m.maps)-1)
	}
	known := atPoint(m.maps[m.applied[source.Node]])
	at := slices.IndexFunc(known, func(c ring.Copy) bool { return c.ID == source.ID })
	if at < 0 || m.stores[source.ID] == nil {
		return
	}
	mine := known[at]
	to, ok := map[ring.State]ring.State{ring.StateFull: ring.StateJoining, ring.StateLeaving: ring.StateFull}[mine.State]
	for _, target := range known {
		if ok && target.State == to && m.stores[target.ID] != nil {
			before := slices.DeleteFunc(slices.Clone(m.flying), func(c *modelCall) bool { return c.copy.Node != source.Node })
			m.pushes = append(m.pushes, &modelPush{source: mine, target: target, before: before, generation: m.applied[source.Node]})
			return
		}
	}
}

// missed returns an acknowledged write that a quorum of some map could miss. A node that was
// replaced is gone for good, and answers nothing.
func (m *quorumModel) missed() (write, generation int, ok bool) {
	for g, shards := range m.maps {
		full := fullOf(shards)
		for i, w := range m.writes {
			lacking := 0
			for _, c := range full {
				if st := m.stores[c.ID]; st != nil && m.answers(c) && m.applied[c.Node] <= g && !st.writes[i] {
					lacking++
				}
			}
			if w.acked && lacking >= fanout.Majority(m.route(g).Copies) {
				return i, g, true
			}
		}
	}
	return 0, 0, false
}

// answers reports whether a copy may still answer: its node has a place in the map.
func (m *quorumModel) answers(c ring.Copy) bool {
	return !m.gone[c.Node] && slices.ContainsFunc(m.now(), func(s ring.Shard) bool { return s.On(c.Node) })
}

// describe tells the maps, and which copies have a write.
func (m *quorumModel) describe(write int) string {
	var out strings.Builder
	for g, shards := range m.maps {
		fmt.Fprintf(&out, "map %d:", g)
		for _, c := range atPoint(shards) {
			has := "lost"
			if st := m.stores[c.ID]; st != nil {
				has = fmt.Sprint(st.writes[write])
			}
			fmt.Fprintf(&out, " %d@%s %s %s %s;", c.ID, c.Node, c.State, c.Instead, has)
		}
		fmt.Fprintln(&out)
	}
	fmt.Fprintln(&out, "applied:", m.applied)
	return out.String()
}

// TestNoAcknowledgedWriteIsMissed: copies are lost, replaced and filled, nodes and coordinators
// lag, and every acknowledged write is found by each quorum of each map that still answers.
func TestNoAcknowledgedWriteIsMissed(t *testing.T) {
	acked, full, left, moves, singles := 0, 0, 0, 0, 0
	check := func(t *rapid.T) {
		m := newQuorumModel(rapid.IntRange(1, 5).Draw(t, "copies"))
		for range 150 {
			before := len(fullOf(m.now()))
			m.step(t)
			if len(fullOf(m.now())) > before {
				full++
			}
			if i, g, ok := m.missed(); ok {
				t.Fatalf("write %d of map %d is missed by map %d:\n%s", i, m.writes[i].generation, g, m.describe(i))
			}
		}
		left += m.left
		moves += m.moves
		singles += m.singles
		for _, w := range m.writes {
			if w.acked {
				acked++
			}
		}
	}
	enough := func() bool {
		return acked > 0 && full > 0 && (left > 0 && moves > 0 && singles > 0 || testing.Short()) // which runs too few
	}
	for again := 5; again > 0 && !enough(); again-- { // now and then a hundred cases move no copy
		rapid.Check(t, check)
	}
	t.Logf("%d writes acknowledged, %d copies filled, %d have left, %d were moved, %d replaced one by one", acked, full, left, moves, singles)
	if !enough() {
		t.Error("the model does nothing of some kind")
	}
}
