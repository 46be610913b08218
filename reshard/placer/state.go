package placer

import (
	"math"
	"slices"
)

// state is where copies are and where they are to be. Copies are numbered through all shards,
// so that a million of them takes a few flat slices.
type state struct {
	in      *Cluster
	nodes   []node
	usable  []int32  // of each zone: how many of its nodes take copies
	first   []int32  // of each shard: its first copy; one more at the end
	shard   []int32  // of each copy
	from    []int32  // of each copy: the node that has it
	to      []int32  // of each copy: the node that is to have it
	bytes   []int64  // of each copy
	load    []int64  // of each copy; nil when none has any
	reason  []Reason // of each copy that was moved; reasons for others
	moved   []int32  // copies in the order in which they were moved first
	class   []int32  // of each shard
	classes []class
	overlap overlaps
	survey  survey
}

// node is a node and what it has by the plan so far.
type node struct {
	zone      int32
	usable    bool // takes copies
	lost      bool
	away      bool // takes none now
	weight    float64
	bytes     int64
	load      int64
	goal      int64 // bytes
	low, high int64 // bytes; within these it is balanced
	incoming  []int32
}

// fill is how full a node is, 1 at its goal.
func (n *node) fill() float64 {
	if n.goal == 0 {
		return math.MaxFloat64
	}
	return float64(n.bytes) / float64(n.goal)
}

// beyond is how many bytes a node with that many is beyond the tolerance.
func (n *node) beyond(bytes int64) int64 { return max(bytes-n.high, n.low-bytes, 0) }

func newState(c *Cluster) *state {
	s := &state{in: c, nodes: make([]node, len(c.Nodes)), first: make([]int32, len(c.Shards)+1)}
	s.addNodes()
	total := 0
	for i := range c.Shards {
		s.first[i] = int32(total)
		total += len(c.Shards[i].Copies)
	}
	s.first[len(c.Shards)] = int32(total)
	s.shard, s.from, s.to = make([]int32, total), make([]int32, total), make([]int32, total)
	s.bytes, s.reason = make([]int64, total), slices.Repeat([]Reason{reasons}, total)
	s.addCopies()
	s.overlap = findOverlaps(c)
	s.survey = survey{count: make([]int32, len(s.usable)), taken: make([]int32, len(s.usable))}
	s.classify()
	return s
}

// addNodes numbers the zones. Nodes without one share one.
func (s *state) addNodes() {
	zones := map[string]int32{}
	for i := range s.in.Nodes {
		n := &s.in.Nodes[i]
		z, ok := zones[n.Zone]
		if !ok {
			z = int32(len(zones))
			zones[n.Zone] = z
			s.usable = append(s.usable, 0)
		}
		s.nodes[i] = node{zone: z, lost: n.Lost, away: n.Away, usable: !n.Lost && !n.Draining, weight: float64(max(n.Weight, 1))}
		if s.nodes[i].usable {
			s.usable[z]++
		}
	}
}

func (s *state) addCopies() {
	at := int32(0)
	for i := range s.in.Shards {
		for j := range s.in.Shards[i].Copies {
			c := &s.in.Shards[i].Copies[j]
			s.shard[at], s.from[at], s.to[at], s.bytes[at] = int32(i), c.Node, c.Node, c.Bytes
			if c.Node != None {
				s.nodes[c.Node].bytes += c.Bytes
				s.nodes[c.Node].load += c.Load
			}
			if c.Load != 0 {
				if s.load == nil {
					s.load = make([]int64, len(s.shard))
				}
				s.load[at] = c.Load
			}
			at++
		}
	}
}

// copies returns the numbers of the copies of a shard: from, and up to, not including.
func (s *state) copies(shard int32) (from, to int32) { return s.first[shard], s.first[shard+1] }

// pinned reports whether a copy stays, even if it is misplaced.
func (s *state) pinned(c int32) bool {
	sh := s.shard[c]
	return s.in.Shards[sh].Copies[c-s.first[sh]].Pinned
}

// alive reports whether there is a copy where a copy is, or will be by the plan.
func (s *state) alive(c int32) bool { return s.to[c] != None && !s.nodes[s.to[c]].lost }

// zone returns the zone of a node, None for None.
func (s *state) zone(n int32) int32 {
	if n == None {
		return None
	}
	return s.nodes[n].zone
}

// leaves returns the zone that has a copy until it has moved: None for one that is lost.
func (s *state) leaves(c int32) int32 {
	if n := s.from[c]; n != None && !s.nodes[n].lost {
		return s.nodes[n].zone
	}
	return None
}

func (s *state) loadOf(c int32) int64 {
	if s.load == nil {
		return 0
	}
	return s.load[c]
}

// move sends a copy to a node. The reason of one that was moved already stays.
func (s *state) move(c, to int32, why Reason) {
	if s.reason[c] == reasons {
		s.reason[c] = why
		s.moved = append(s.moved, c)
	}
	if was := s.to[c]; was != None {
		n := &s.nodes[was]
		n.bytes -= s.bytes[c]
		n.load -= s.loadOf(c)
	}
	n := &s.nodes[to]
	n.bytes += s.bytes[c]
	n.load += s.loadOf(c)
	s.to[c] = to
	n.incoming = append(n.incoming, c)
}

// nodeBytes returns what nodes have before and after.
func (s *state) nodeBytes() []NodeBytes {
	out := make([]NodeBytes, len(s.nodes))
	for i := range s.nodes {
		out[i].After, out[i].Goal = s.nodes[i].bytes, s.nodes[i].goal
	}
	for c, n := range s.from {
		if n != None {
			out[n].Before += s.bytes[c]
		}
	}
	return out
}
