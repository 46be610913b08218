package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/cluster/quorum"
	"divan/shard/ring"
)

// quorumModel is one range whose copies change while it is written to and read by
// coordinators of any map: the rules of ring, quorum and replica without what carries them.
// docs/decisions/0039 argues that no acknowledged write can be missed; this looks for a
// case in which one is.
type quorumModel struct {
	maps    []ring.Shard         // by generation
	index   uint64               // of the last command
	joined  map[uint64]int       // generation in which a copy joined
	applied map[string]int       // generation that a node has applied
	stores  map[uint64]*modelSet // what copies have, by id; nil: it was lost
	filled  map[uint64][]uint64  // by joining copy: those that have filled it
	writes  []*modelWrite
	flying  []*modelCall
	pushes  []*modelPush
}

type modelSet struct {
	node   string
	writes map[int]bool
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

// modelPush is a push on its way. It reads what the source has when all that was flying at
// its beginning has landed.
type modelPush struct {
	source, target ring.Copy
	before         []*modelCall
	read           map[int]bool // nil: not read yet
}

func (m *quorumModel) now() ring.Shard { return m.maps[len(m.maps)-1] }

func (m *quorumModel) change(shards []ring.Shard, ok bool) {
	if !ok {
		return
	}
	m.maps = append(m.maps, shards[0])
	for _, c := range shards[0].Copies {
		if _, known := m.stores[c.ID]; !known {
			m.stores[c.ID] = &modelSet{c.Node, map[int]bool{}}
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
		joined: map[uint64]int{}, applied: map[string]int{}, stores: map[uint64]*modelSet{}, filled: map[uint64][]uint64{},
	}
	s := ring.Shard{Range: ring.Full()}
	for i := range n {
		s.Copies = append(s.Copies, ring.Copy{Node: fmt.Sprint("n", i)})
	}
	m.change(ring.Identify([]ring.Shard{s}, m.ids()))
	return m
}

// step does one thing that may happen.
func (m *quorumModel) step(t *rapid.T) {
	copies := m.now().Copies
	one := rapid.SampledFrom(copies).Draw(t, "copy")
	what := rapid.IntRange(0, 11).Draw(t, "what")
	if len(m.now().Full()) < len(copies) && rapid.IntRange(0, 2).Draw(t, "fill") > 0 {
		what = rapid.SampledFrom([]int{5, 10, 10, 10, 11}).Draw(t, "instead") // else hardly a copy is ever full again
	}
	switch what {
	case 0, 1: // a coordinator begins a write
		g := rapid.IntRange(0, len(m.maps)-1).Draw(t, "generation")
		full := len(m.maps[g].Full())
		m.writes = append(m.writes, &modelWrite{generation: g, count: quorum.NewWrite(full, len(m.maps[g].Copies)-full, 0), asked: map[uint64]bool{}})
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
		if m.now().Dispensable(one.Node) {
			if s := m.stores[one.ID]; s != nil {
				m.stores[one.ID] = nil
			}
			m.flying = slices.DeleteFunc(m.flying, func(c *modelCall) bool { return c.copy.ID == one.ID })
			m.change(ring.Apply([]ring.Shard{m.now()}, []ring.Change{{Copy: one.ID, To: ring.StateJoining}}, m.ids()))
		}
	case 9: // a node is replaced
		if m.now().Dispensable(one.Node) {
			m.change(ring.Replace([]ring.Shard{m.now()}, one.Node, fmt.Sprint("m", m.index), m.ids()))
		}
	case 10: // a push begins, reads, or ends
		m.push(t, one)
	case 11: // copies are proposed to be full
		var changes []ring.Change
		for _, c := range copies {
			if c.State == ring.StateJoining {
				changes = append(changes, ring.Change{Copy: c.ID, To: ring.StateFull, Filled: m.filled[c.ID]})
			}
		}
		m.change(ring.Apply([]ring.Shard{m.now()}, changes, m.ids()))
	}
}

func (m *quorumModel) hear(node string, generation int) {
	m.applied[node] = max(m.applied[node], generation)
}

func (m *quorumModel) letIn(t *rapid.T) {
	i := rapid.IntRange(max(0, len(m.writes)-4), len(m.writes)-1).Draw(t, "write")
	w := m.writes[i]
	c := rapid.SampledFrom(m.maps[w.generation].Copies).Draw(t, "at")
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
	w.count.Follow(c.copy.State == ring.StateJoining, nil)
	o, _ := w.count.Outcome()
	w.acked = o == quorum.Committed
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
			m.filled[p.target.ID] = append(m.filled[p.target.ID], p.source.ID)
			m.pushes = slices.Delete(m.pushes, i, i+1)
		}
		return
	}
	if rapid.Bool().Draw(t, "hears") {
		m.hear(source.Node, len(m.maps)-1)
	}
	known := m.maps[m.applied[source.Node]]
	mine, ok := known.CopyOn(source.Node)
	if !ok || mine.State != ring.StateFull || m.stores[mine.ID] == nil {
		return
	}
	for _, target := range known.Copies {
		if target.State == ring.StateJoining && m.stores[target.ID] != nil {
			before := slices.DeleteFunc(slices.Clone(m.flying), func(c *modelCall) bool { return c.copy.Node != source.Node })
			m.pushes = append(m.pushes, &modelPush{source: mine, target: target, before: before})
			return
		}
	}
}

// missed returns an acknowledged write that a quorum of some map could miss. A node that was
// replaced is gone for good, and answers nothing.
func (m *quorumModel) missed() (write, generation int, ok bool) {
	for g, s := range m.maps {
		full := s.Full()
		for i, w := range m.writes {
			lacking := 0
			for _, c := range full {
				if st := m.stores[c.ID]; st != nil && m.now().On(c.Node) && m.applied[c.Node] <= g && !st.writes[i] {
					lacking++
				}
			}
			if w.acked && lacking >= quorum.Majority(len(full)) {
				return i, g, true
			}
		}
	}
	return 0, 0, false
}

// describe tells the maps, and which copies have a write.
func (m *quorumModel) describe(write int) string {
	var out strings.Builder
	for g, s := range m.maps {
		fmt.Fprintf(&out, "map %d:", g)
		for _, c := range s.Copies {
			has := "lost"
			if st := m.stores[c.ID]; st != nil {
				has = fmt.Sprint(st.writes[write])
			}
			fmt.Fprintf(&out, " %d@%s %s %s;", c.ID, c.Node, c.State, has)
		}
		fmt.Fprintln(&out)
	}
	fmt.Fprintln(&out, "applied:", m.applied)
	return out.String()
}

// TestNoAcknowledgedWriteIsMissed: copies are lost, replaced and filled, nodes and
// coordinators lag, and whatever was acknowledged is found by each quorum of each map
// that still answers.
func TestNoAcknowledgedWriteIsMissed(t *testing.T) {
	acked, full := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := newQuorumModel(rapid.IntRange(1, 5).Draw(t, "copies"))
		for range 150 {
			before := len(m.now().Full())
			m.step(t)
			if len(m.now().Full()) > before {
				full++
			}
			if i, g, ok := m.missed(); ok {
				t.Fatalf("write %d of map %d is missed by map %d:\n%s", i, m.writes[i].generation, g, m.describe(i))
			}
		}
		for _, w := range m.writes {
			if w.acked {
				acked++
			}
		}
	})
	if acked == 0 || full == 0 {
		t.Errorf("%d writes acknowledged, %d copies filled: the model does nothing", acked, full)
	}
}
