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

// pairsFrom returns the pairs of a copy of this node.
func (r *Repair) pairsFrom(name string) []pair {
	db, one, here := r.o.Meta.CopyIn(name, r.o.Node)
	rng, _, _, _ := ring.ParseCopyName(name)
	if !here || one.State == ring.StateCopying {
		return nil
	}
	return appendPairs(nil, db, rng, r.o.Node)
}

// pairsTo returns the pairs of this node that push to a copy on a node, by its name. Without a
// node: all pairs of copies that hold some of its documents.
func (r *Repair) pairsTo(name, node string) []pair {
	db, _, _ := r.o.Meta.CopyIn(name, r.o.Node)
	rng, _, _, ok := ring.ParseCopyName(name)
	if db == nil || !ok {
		return nil
	}
	return slices.DeleteFunc(pairsOf(db, r.o.Node), func(p pair) bool {
		if node != "" {
			return p.node != node || p.target() != name
		}
		own, _, _, _ := ring.ParseCopyName(p.copy)
		return !own.Overlaps(rng)
	})
}

// holders returns the nodes that push to a copy on a node: those with another one that holds
// some of its documents.
func (r *Repair) holders(name, node string) []string {
	db, _, _ := r.o.Meta.CopyIn(name, r.o.Node)
	rng, _, _, ok := ring.ParseCopyName(name)
	if db == nil || !ok {
		return nil
	}
	var out []string
	for _, s := range db.Shards {
		if !s.Overlaps(rng) {
			continue
		}
		for _, c := range s.Copies {
			if (c.Node != node || s.Range != rng) && !slices.Contains(out, c.Node) {
				out = append(out, c.Node)
			}
		}
	}
	return out
}
