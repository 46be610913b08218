package placer

import (
	"slices"
	"strconv"
)

// class is shards to which the same rules of zones apply: the same placement rule and the same number of
// copies. There are few, however many shards there are.
type class struct {
	rule   []int32 // of each zone: the copies that the placement rule gives it; nil without a rule
	copies int32   // of each shard that can be placed
	// Of each zone: how many copies of a shard it has when all is well. They
	// differ where it depends on the shard: with three copies in five zones they are 0 and 1.
	least, most []int32
	bytes       float64 // of one copy of each of its shards
}

// fixed reports whether each zone has the same number of copies of all shards.
func (k *class) fixed() bool { return slices.Equal(k.least, k.most) }

// classify finds the class of each shard.
func (s *state) classify() {
	s.class = make([]int32, len(s.in.Shards))
	known := map[string]int32{}
	ofDatabase := make([]map[int]int32, len(s.in.Databases)) // by the number of copies
	for i := range s.in.Shards {
		sh := &s.in.Shards[i]
		n := len(sh.Copies)
		k, ok := ofDatabase[sh.Database][n]
		if !ok {
			k = s.classOf(sh, known)
			if ofDatabase[sh.Database] == nil {
				ofDatabase[sh.Database] = map[int]int32{}
			}
			ofDatabase[sh.Database][n] = k
		}
		s.class[i] = k
		if s.anyAlive(int32(i)) { // nothing will ever be there of one that is lost
			sum := int64(0)
			for c, end := s.copies(int32(i)); c < end; c++ {
				sum += s.bytes[c]
			}
			s.classes[k].bytes += float64(sum) / float64(n)
		}
	}
}

func (s *state) anyAlive(shard int32) bool {
	for c, end := s.copies(shard); c < end; c++ {
		if s.alive(c) {
			return true
		}
	}
	return false
}

// classOf returns the class of a shard. Rules that name the same zones in another order
// are the same.
func (s *state) classOf(sh *Shard, known map[string]int32) int32 {
	rule := s.rule(sh)
	key := strconv.AppendInt(nil, int64(len(sh.Copies)), 10)
	for z, n := range rule {
		if n > 0 {
			key = strconv.AppendInt(append(key, ' '), int64(z), 10)
			key = strconv.AppendInt(append(key, ':'), int64(n), 10)
		}
	}
	if rule != nil {
		key = append(key, '!')
	}
	k, ok := known[string(key)]
	if !ok {
		k = int32(len(s.classes))
		known[string(key)] = k
		s.classes = append(s.classes, newClass(int32(len(sh.Copies)), rule, s.usable))
	}
	return k
}

// rule returns the copies that the placement rule gives to each zone, nil without a rule. A
// zone that no node is in is left out.
func (s *state) rule(sh *Shard) []int32 {
	placement := s.in.Databases[sh.Database].Placement
	if len(placement) == 0 {
		return nil
	}
	out := make([]int32, len(s.usable))
	for _, p := range placement {
		at := slices.IndexFunc(s.in.Nodes, func(n Node) bool { return n.Zone == p.Zone })
		if at >= 0 {
			out[s.nodes[at].zone] += int32(p.N)
		}
	}
	return out
}

// newClass returns the class of shards with so many copies, for zones with so many nodes that
// take copies.
func newClass(copies int32, rule, usable []int32) class {
	k := class{rule: rule, least: make([]int32, len(usable)), most: make([]int32, len(usable))}
	level := int32(0)
	sum := func(level int32) (n int32) {
		for z := range usable {
			n += k.limit(z, level, usable)
		}
		return n
	}
	all := sum(copies)
	k.copies = min(copies, all)
	for sum(level) < k.copies {
		level++
	}
	for z := range usable {
		k.most[z] = k.limit(z, level, usable)
		switch {
		case sum(level) == k.copies:
			k.least[z] = k.most[z]
		case rule == nil:
			k.least[z] = k.limit(z, level-1, usable)
		}
	}
	return k
}

// limit is how many copies a zone has at most when none has more than level.
func (k *class) limit(zone int, level int32, usable []int32) int32 {
	if k.rule != nil { // the rule says how many; which zone goes without when there are fewer is open
		if level == 0 {
			return 0
		}
		return min(k.rule[zone], usable[zone])
	}
	return min(level, usable[zone])
}
