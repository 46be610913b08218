package placer_test

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"divan/reshard/placer"
	"divan/shard/ring"
)

// drawCluster draws a small cluster in any state: with ranges that overlap, rules, nodes that are lost
// and drained, copies that are where they should not be, but never two of a point on one node.
func drawCluster(t *rapid.T) *placer.Cluster {
	c := &placer.Cluster{Nodes: zonedNodes(rapid.IntRange(1, 9).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "zones"))}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Draining = rapid.IntRange(0, 5).Draw(t, "draining") == 0
		n.Lost = rapid.IntRange(0, 5).Draw(t, "lost") == 0
		n.Weight = int64(rapid.IntRange(0, 3).Draw(t, "weight"))
	}
	for d := range rapid.IntRange(0, 6).Draw(t, "databases") {
		var db placer.Database
		if rapid.IntRange(0, 2).Draw(t, "ruled") == 0 {
			db.Placement = ring.Placement{{Zone: "z0", N: rapid.IntRange(1, 2).Draw(t, "rule")}, {Zone: "z1", N: 1}}
		}
		c.Databases = append(c.Databases, db)
		ranges := ring.Split(2)
		if rapid.Bool().Draw(t, "split") {
			ranges = append(ranges, ring.Split(4)[:2]...)
		}
		for _, r := range ranges {
			s := placer.Shard{Range: r, Database: int32(d)}
			for _, n := range rapid.Permutation(nodeNumbers(c)).Draw(t, "on")[:min(len(c.Nodes), rapid.IntRange(1, 3).Draw(t, "n"))] {
				if !holdsPoint(c, s, n) {
					s.Copies = append(s.Copies, placer.Copy{
						Node: n, Bytes: int64(rapid.IntRange(0, 1000).Draw(t, "bytes")),
						Load: int64(rapid.IntRange(0, 9).Draw(t, "load")), Pinned: rapid.IntRange(0, 9).Draw(t, "pinned") == 0,
					})
				}
			}
			if len(s.Copies) > 0 {
				c.Shards = append(c.Shards, s)
			}
		}
	}
	return c
}

func nodeNumbers(c *placer.Cluster) []int32 {
	out := make([]int32, len(c.Nodes))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// holdsPoint reports whether a node has a copy of a point of a shard.
func holdsPoint(c *placer.Cluster, s placer.Shard, n int32) bool {
	return slices.ContainsFunc(c.Shards, func(o placer.Shard) bool {
		return o.Database == s.Database && o.Overlaps(s.Range) && slices.ContainsFunc(o.Copies, func(x placer.Copy) bool { return x.Node == n })
	})
}

// crowd is how many copies of a shard the zone has that has most, of copies that are there.
func crowd(c *placer.Cluster, s placer.Shard) int {
	zones := map[string]int{}
	most := 0
	for _, x := range s.Copies {
		if !c.Nodes[x.Node].Lost {
			zones[c.Nodes[x.Node].Zone]++
			most = max(most, zones[c.Nodes[x.Node].Zone])
		}
	}
	return most
}

// After each prefix of the moves no node has two copies of a point and no zone more than before and
// at the end; nothing is moved to a node that takes no copies, or twice.
func TestEachPrefixIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		r := placer.Plan(c, placer.Options{})
		if again := placer.Plan(c, placer.Options{}); !reflect.DeepEqual(r, again) {
			t.Fatal("another plan for the same input")
		}
		end, now := apply(c, r.Moves), apply(c, nil)
		for _, m := range r.Moves {
			s := now.Shards[m.Shard]
			if n := c.Nodes[m.To]; n.Lost || n.Draining {
				t.Fatalf("%+v: to a node that takes none", m)
			}
			if holdsPoint(now, s, m.To) {
				t.Fatalf("%+v: the node has a copy", m)
			}
			if !step(now, m) {
				t.Fatalf("%+v: moves nothing", m)
			}
			overlaps := slices.ContainsFunc(c.Shards, func(o placer.Shard) bool {
				return o.Database == s.Database && o.Overlaps(s.Range) && o.Range != s.Range
			})
			if most := crowd(now, now.Shards[m.Shard]); !overlaps && most > max(crowd(c, c.Shards[m.Shard]), crowd(end, end.Shards[m.Shard])) {
				t.Fatalf("%+v: %d copies in one zone", m, most)
			}
		}
		// Plans come to an end: what was in the way of a copy may let it move in the next one.
		for range 10 {
			end = apply(end, placer.Plan(end, placer.Options{}).Moves)
		}
		if again := placer.Plan(end, placer.Options{}); len(again.Moves) > 0 {
			t.Fatalf("moves to and fro: %+v", again.Moves)
		}
	})
}

// A plan for what has to leave its node moves nothing else, and all of that which any plan moves.
func TestLeavingOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		r := placer.Plan(c, placer.Options{LeavingOnly: true})
		for _, m := range r.Moves {
			if m.Reason > placer.Draining {
				t.Fatalf("%+v", m)
			}
		}
		leaves := func(r *placer.Result) (n int) {
			for _, m := range r.Moves {
				if m.Reason <= placer.Draining {
					n++
				}
			}
			for _, l := range r.Left {
				if l.Reason <= placer.Draining && l.Shard != placer.None {
					n++
				}
			}
			return n
		}
		if all := placer.Plan(c, placer.Options{}); leaves(r) != leaves(all) {
			t.Fatalf("%d copies leave, %d by a plan for all", leaves(r), leaves(all))
		}
		if again := placer.Plan(apply(c, r.Moves), placer.Options{LeavingOnly: true}); len(again.Moves) > 0 && len(r.Moves) == 0 {
			t.Fatalf("%+v", again.Moves)
		}
	})
}

// A cluster of small copies is balanced, after any changes, with hardly more bytes than have to
// move.
func TestBalancesWithFewBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zones := rapid.IntRange(6, 7).Draw(t, "zones") // none comes near a third of the nodes, where zones bind copies
		c := large(zones*rapid.IntRange(4, 5).Draw(t, "nodes"), zones, 9000)
		for i := range c.Shards {
			for j := range c.Shards[i].Copies {
				c.Shards[i].Copies[j].Bytes = c.Shards[i].Copies[j].Bytes>>20%32 + 1
			}
		}
		extra := rapid.IntRange(0, zones).Draw(t, "added")
		c.Nodes = zonedNodes(len(c.Nodes)+extra, zones)
		c.Nodes[rapid.IntRange(0, len(c.Nodes)-1).Draw(t, "lost")].Lost = rapid.Bool().Draw(t, "is lost")
		c.Nodes[rapid.IntRange(0, len(c.Nodes)-1).Draw(t, "drained")].Draining = rapid.Bool().Draw(t, "drains")
		r := placer.Plan(c, placer.Options{})
		checkBalanced(t, c, r)
		if again := placer.Plan(apply(c, r.Moves), placer.Options{}); again.Totals.Bytes > 0 {
			t.Fatalf("then moves %+v", again.Moves)
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
	Helper()
}

// checkBalanced checks that nodes are within 5 % of equal parts, that each shard is
// in three zones, and that at most 1.2 times the bytes move that have to: of nodes that go all, and what others
// have above 105 %; or what nodes lack to 95 %.
func checkBalanced(t failer, c *placer.Cluster, r *placer.Result) {
	t.Helper()
	total, usable := int64(0), int64(0)
	for i, n := range c.Nodes {
		total += r.Nodes[i].Before
		if !n.Lost && !n.Draining {
			usable++
		}
	}
	goal := float64(total) / float64(usable)
	leave, come := 0.0, 0.0
	for i, n := range c.Nodes {
		before, after := float64(r.Nodes[i].Before), float64(r.Nodes[i].After)
		if n.Lost || n.Draining {
			leave += before
			if after != 0 {
				t.Fatalf("node %d still has %v", i, after)
			}
			continue
		}
		leave += max(before-goal*1.05, 0)
		come += max(goal*0.95-before, 0)
		if after < goal*0.95-2 || after > goal*1.05+2 {
			t.Fatalf("node %d has %v, of %v", i, after, goal)
		}
	}
	if least := max(leave, come); float64(r.Totals.Bytes) > least*1.2+2 {
		t.Fatalf("moves %d, with %.0f bytes that have to", r.Totals.Bytes, least)
	}
	end := apply(c, r.Moves)
	for _, s := range end.Shards {
		if crowd(end, s) > 1 {
			t.Fatalf("two copies in a zone: %+v", s)
		}
	}
	if len(r.Left) > 0 {
		t.Fatalf("left %+v", r.Left[0])
	}
}
