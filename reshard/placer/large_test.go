package placer_test

import (
	"math"
	"reflect"
	"testing"

	"divan/reshard/placer"
)

// scenarios are what happens to a large cluster. Nodes 0 to 189 hold copies; those of
// one zone have numbers that differ by five.
func scenarios() map[string]func(c *placer.Cluster) {
	add := func(c *placer.Cluster) { c.Nodes = append(c.Nodes, zonedNodes(200, 5)[len(c.Nodes):]...) }
	lose := func(c *placer.Cluster) {
		for i := range 5 { // of two zones, so that each shard has a copy elsewhere
			c.Nodes[5*i].Lost, c.Nodes[5*i+1].Lost = true, true
		}
	}
	drain := func(c *placer.Cluster) {
		for i := 50; i < 60; i++ {
			c.Nodes[i].Draining = true
		}
	}
	return map[string]func(c *placer.Cluster){
		"added":   add,
		"lost":    lose,
		"drained": drain,
		"all":     func(c *placer.Cluster) { add(c); lose(c); drain(c) },
		"one zone added": func(c *placer.Cluster) {
			for i := range 10 {
				c.Nodes = append(c.Nodes, zonedNodes(200, 5)[190+i])
				c.Nodes[190+i].Zone = "z0"
			}
		},
		"new zone": func(c *placer.Cluster) {
			for i := range 10 {
				c.Nodes = append(c.Nodes, zonedNodes(200, 5)[190+i])
				c.Nodes[190+i].Zone = "new"
			}
		},
		"zone lost": func(c *placer.Cluster) {
			for i := 0; i < 190; i += 5 {
				c.Nodes[i].Lost = true
			}
		},
	}
}

// base is a balanced cluster of a million copies.
func base(tb testing.TB) *placer.Cluster {
	tb.Helper()
	copies := 1_000_000
	if testing.Short() {
		copies /= 10
	}
	c := large(190, 5, copies)
	r := placer.Plan(c, placer.Options{})
	return apply(c, r.Moves)
}

// Issue 22: within 5 % of balance, zones apart, at most 1.2 times the bytes that have to move.
func TestLargeClusters(t *testing.T) {
	start := base(t)
	for name, change := range scenarios() {
		t.Run(name, func(t *testing.T) {
			c := apply(start, nil)
			c.Nodes = append([]placer.Node(nil), c.Nodes...)
			change(c)
			r := placer.Plan(c, placer.Options{})
			checkBalanced(t, c, r)
			low, high := loads(apply(c, r.Moves), r)
			t.Logf("%d moves of %d MB, %.3f times the least; furthest from the goal %.4f; load %.2f to %.2f of equal parts", len(r.Moves),
				r.Totals.Bytes>>20, float64(r.Totals.Bytes)/float64(r.Totals.MustMove), furthest(r), low, high)
			if again := placer.Plan(apply(c, r.Moves), placer.Options{}); len(again.Moves) > 0 {
				t.Errorf("then there are %d moves", len(again.Moves))
			}
			if !reflect.DeepEqual(r, placer.Plan(c, placer.Options{})) {
				t.Error("another plan for the same input")
			}
		})
	}
}

// furthest is how far the worst node is from its goal, as a part of that.
func furthest(r *placer.Result) float64 {
	most := 0.0
	for _, n := range r.Nodes {
		if n.Goal > 0 {
			most = max(most, math.Abs(float64(n.After)/float64(n.Goal)-1))
		}
	}
	return most
}

func BenchmarkPlan(b *testing.B) {
	start := base(b)
	for name, change := range scenarios() {
		b.Run(name, func(b *testing.B) {
			c := apply(start, nil)
			c.Nodes = append([]placer.Node(nil), c.Nodes...)
			change(c)
			b.ReportAllocs()
			for b.Loop() {
				placer.Plan(c, placer.Options{})
			}
		})
	}
}

// loads returns the least and the greatest load of a node, relative to its goal of bytes.
func loads(c *placer.Cluster, r *placer.Result) (low, high float64) {
	load := make([]float64, len(c.Nodes))
	all, goals := 0.0, 0.0
	for _, s := range c.Shards {
		for _, x := range s.Copies {
			load[x.Node] += float64(x.Load)
			all += float64(x.Load)
		}
	}
	for _, n := range r.Nodes {
		goals += float64(n.Goal)
	}
	low = math.Inf(1)
	for i, n := range r.Nodes {
		if n.Goal > 0 {
			by := load[i] / all / (float64(n.Goal) / goals)
			low, high = min(low, by), max(high, by)
		}
	}
	return low, high
}
