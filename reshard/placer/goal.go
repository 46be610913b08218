package placer

import "math"

// setGoals says how many bytes each node should have, and from which to which it is
// within the tolerance.
//
// The goals minimize the sum of bytes² / weight, as if copies could be cut at will: then no
// node can be relieved by one that is less full. Zones bind them: a class has between least and
// most copies of all its bytes in a zone, and one at most on a node. Each class is poured over
// the nodes, given what the others are, until nothing moves any more; the function is convex,
// so there is one solution.
func (s *state) setGoals(tolerance float64) {
	p := pour{state: s, have: make([]float64, len(s.nodes)), now: make([]float64, len(s.nodes))}
	p.run()
	for i := range s.nodes {
		n := &s.nodes[i]
		n.goal = int64(math.Round(p.have[i]))
		n.low = int64(math.Ceil(float64(n.goal) * (1 - tolerance)))
		n.high = int64(float64(n.goal) * (1 + tolerance))
	}
}

// maxSweeps bounds the search for goals. One class needs two sweeps, a dozen about ten.
const maxSweeps = 100

// pour finds the goals. All is in bytes.
type pour struct {
	*state
	have  []float64   // of each node
	now   []float64   // of each node, of the class that is poured
	parts [][]float64 // of each class: what each node has of it
}

func (p *pour) run() {
	p.parts = make([][]float64, len(p.classes))
	total := 0.0
	for k := range p.classes {
		p.parts[k] = make([]float64, len(p.nodes))
		total += float64(p.classes[k].bytes * float64(p.classes[k].copies))
	}
	for range maxSweeps {
		change := 0.0
		for k := range p.classes {
			change += p.class(k)
		}
		if change <= total*1e-9 {
			return
		}
	}
}

// class pours one class over what nodes have of the others, and returns how many bytes
// that changed.
func (p *pour) class(k int) float64 {
	c := &p.classes[k]
	part, top := p.parts[k], 0.0
	for i := range p.nodes {
		p.have[i] -= part[i]
		if n := &p.nodes[i]; n.usable {
			top = max(top, (p.have[i]+c.bytes)/n.weight)
		}
	}
	level := rise(top, c.bytes*float64(c.copies), func(level float64) (sum float64) {
		for z := range p.usable {
			sum += p.inZone(c, z, level)
		}
		return sum
	})
	for z := range p.usable {
		want := p.inZone(c, z, level)
		p.fillZone(c, z, rise(top, want, func(level float64) float64 { return p.fillZone(c, z, level) }))
	}
	change := 0.0
	for i := range part {
		change += math.Abs(p.now[i] - part[i])
		part[i] = p.now[i]
		p.have[i] += part[i]
	}
	return change
}

// inZone returns the bytes that a zone takes of a class when nodes are filled up to a level of
// bytes per weight.
func (p *pour) inZone(c *class, zone int, level float64) float64 {
	return min(max(p.fillZone(c, zone, level), float64(c.least[zone])*c.bytes), float64(c.most[zone])*c.bytes)
}

// fillZone fills the nodes of a zone up to a level, each with one copy of each shard at most, and returns
// how much it took.
func (p *pour) fillZone(c *class, zone int, level float64) (sum float64) {
	for i := range p.nodes {
		n := &p.nodes[i]
		if int(n.zone) != zone || !n.usable {
			continue
		}
		// The conversion has the product rounded, so that all processors come to the same.
		p.now[i] = min(max(float64(level*n.weight)-p.have[i], 0), c.bytes)
		sum += p.now[i]
	}
	return sum
}

// rise returns the lowest level up to top at which f, which grows with it, is want.
func rise(top, want float64, f func(level float64) float64) float64 {
	low, high := 0.0, top
	for range 100 {
		middle := low + float64((high-low)/2)
		if middle <= low || middle >= high {
			break
		}
		if f(middle) < want {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
