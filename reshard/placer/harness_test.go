package placer_test

import (
	"fmt"
	"math/rand/v2"

	"divan/reshard/placer"
	"divan/shard/ring"
)

// large is a cluster with so many copies, three of each shard on nodes of different zones, of
// sizes from 1 to 1000.
func large(nodes, zones, copies int) *placer.Cluster {
	rnd := rand.New(rand.NewPCG(1, 2))
	c := &placer.Cluster{Nodes: zonedNodes(nodes, zones)}
	const n, q = 3, 8
	all := make([]placer.Copy, 0, copies)
	for at := 0; at+n <= copies; at += n {
		if at/n%q == 0 {
			c.Databases = append(c.Databases, placer.Database{})
		}
		size := sizes(rnd)
		begin := len(all)
		for i, zone := range rnd.Perm(zones)[:n] {
			node := zone + zones*rnd.IntN(nodes/zones)
			all = append(all, placer.Copy{Node: int32(node), Bytes: size + size*int64(i)/50, Load: int64(rnd.ExpFloat64() * 100)})
		}
		c.Shards = append(c.Shards, placer.Shard{
			Range: ring.Split(q)[at/n%q], Database: int32(len(c.Databases) - 1), Copies: all[begin:len(all):len(all)],
		})
	}
	return c
}

// sizes draws uneven sizes: most are small, and some a thousand times as large.
func sizes(rnd *rand.Rand) int64 {
	size := int64(1 << 20)
	for range 10 {
		if rnd.IntN(2) == 0 {
			break
		}
		size *= 2
	}
	return size + rnd.Int64N(size)
}

// zonedNodes returns nodes of which those that follow one another are in different zones.
func zonedNodes(nodes, zones int) []placer.Node {
	out := make([]placer.Node, nodes)
	for i := range out {
		out[i].Node = ring.Node{Name: fmt.Sprintf("n%d", i), Zone: fmt.Sprintf("z%d", i%zones)}
	}
	return out
}

// apply returns the cluster when a plan is done.
func apply(c *placer.Cluster, moves []placer.Move) *placer.Cluster {
	out := &placer.Cluster{Nodes: c.Nodes, Databases: c.Databases, Shards: make([]placer.Shard, len(c.Shards))}
	for i, s := range c.Shards {
		s.Copies = append([]placer.Copy(nil), s.Copies...)
		out.Shards[i] = s
	}
	for _, m := range moves {
		step(out, m)
	}
	return out
}

// step does one move, and reports whether there was what is to move.
func step(c *placer.Cluster, m placer.Move) bool {
	copies := c.Shards[m.Shard].Copies
	for i := range copies {
		if copies[i].Node == m.From && copies[i].Bytes == m.Bytes && !copies[i].Pinned {
			copies[i].Node = m.To
			return true
		}
	}
	return false
}
