package repair

import (
	"slices"

	"divan/cluster/meta"
	"divan/shard/ring"
)

// pairsOf returns the pairs of a database on a node: of each copy there with each other copy that
// holds some of its documents. Copies that are made take part in nothing.
func pairsOf(db *meta.Database, self string) []pair {
	var out []pair
	for _, s := range db.Shards {
		if one, here := s.CopyOn(self); here && one.State != ring.StateCopying {
			out = appendPairs(out, db, s.Range, self)
		}
	}
	return out
}

func appendPairs(out []pair, db *meta.Database, r ring.Range, self string) []pair {
	name := db.CopyName(r)
	for _, o := range db.Shards {
		if !o.Overlaps(r) {
			continue
		}
		p := pair{copy: name}
		if o.Range != r {
			p.to = db.CopyName(o.Range)
		}
		for _, c := range o.Copies {
			if p.node = c.Node; c.State != ring.StateCopying && (c.Node != self || p.to != "") {
				out = append(out, p)
			}
		}
	}
	return out
}

// pairsWith is pairsOf with copies of one other node; empty: of all.
func pairsWith(db *meta.Database, self, node string) []pair {
	return slices.DeleteFunc(pairsOf(db, self), func(p pair) bool { return node != "" && p.node != node })
}
