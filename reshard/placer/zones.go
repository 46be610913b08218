package placer

import "slices"

// survey counts the copies of a shard in each zone, apart from one copy. It is reused for each
// question.
type survey struct {
	count []int32 // copies, of the point that has the most
	taken []int32 // nodes that take copies, but none of this shard
	here  []int32
	nodes []int32
}

// look fills the survey for a copy of a shard.
func (s *state) look(shard, c int32) {
	v := &s.survey
	clear(v.count)
	clear(v.taken)
	v.nodes = v.nodes[:0]
	if !s.overlap.any[shard] {
		for o, end := s.copies(shard); o < end; o++ {
			if o != c {
				if s.alive(o) {
					v.count[s.nodes[s.to[o]].zone]++
				}
				s.take(o)
			}
		}
		return
	}
	for _, p := range s.points(shard) {
		v.here = append(v.here[:0], v.count...)
		clear(v.here)
		s.at(shard, p, func(o int32) {
			if o != c {
				if s.alive(o) {
					v.here[s.nodes[s.to[o]].zone]++
				}
				s.take(o)
			}
		})
		for z, n := range v.here {
			v.count[z] = max(v.count[z], n)
		}
	}
}

// take notes the nodes that a copy has or had.
func (s *state) take(o int32) {
	for _, n := range [2]int32{s.from[o], s.to[o]} {
		if n != None && s.nodes[n].usable && !slices.Contains(s.survey.nodes, n) {
			s.survey.nodes = append(s.survey.nodes, n)
			s.survey.taken[s.nodes[n].zone]++
		}
	}
}

// space reports whether a zone has a node that may have the copy of the survey.
func (s *state) space(zone int) bool { return s.usable[zone] > s.survey.taken[zone] }

// fits reports whether the copy of the survey may be in a zone: by the placement rule, or, without one,
// because no other zone that has space has fewer copies.
func (s *state) fits(shard int32, zone int32) bool {
	count := s.survey.count
	if rule := s.classes[s.class[shard]].rule; rule != nil {
		return count[zone] < rule[zone]
	}
	if count[zone] == 0 {
		return true
	}
	for z := range count {
		if count[z] < count[zone] && s.space(z) {
			return false
		}
	}
	return true
}

// occupied reports whether a node has, or had at the beginning, a copy of a point of a shard, apart
// from c. One that a copy leaves stays occupied, so that moves may be done in any order.
func (s *state) occupied(shard, n, c int32) bool {
	if s.on(shard, n, c) {
		return true
	}
	for _, o := range s.overlap.around(shard) {
		if s.on(o, n, c) {
			return true
		}
	}
	return false
}

func (s *state) on(shard, n, c int32) bool {
	for o, end := s.copies(shard); o < end; o++ {
		if (s.to[o] == n || s.from[o] == n) && o != c {
			return true
		}
	}
	return false
}

// misplaced reports whether a copy is in a zone where it should not be while it has a better
// one, and why. It leaves the survey of it.
func (s *state) misplaced(c int32) (Reason, bool) {
	sh := s.shard[c]
	if s.separate(sh) || !s.alive(c) {
		return 0, false
	}
	zone := s.nodes[s.to[c]].zone
	s.look(sh, c)
	if s.classes[s.class[sh]].rule != nil {
		return Placement, !s.fits(sh, zone)
	}
	count := s.survey.count
	for z := range count {
		if count[z] < count[zone] && s.space(z) {
			return Zones, true
		}
	}
	return Zones, false
}

// separate reports whether a shard is well placed at first sight: no rule, and each copy in
// another zone. It is so for nearly all.
func (s *state) separate(shard int32) bool {
	if s.overlap.any[shard] || s.classes[s.class[shard]].rule != nil {
		return false
	}
	if len(s.usable) == 1 {
		return true
	}
	begin, end := s.copies(shard)
	for a := begin; a < end; a++ {
		for b := begin; b < a; b++ {
			if s.alive(a) && s.alive(b) && s.nodes[s.to[a]].zone == s.nodes[s.to[b]].zone {
				return false
			}
		}
	}
	return true
}
