package repair

import (
	"slices"

	"divan/cluster/meta"
	"divan/cluster/replica"
	"divan/shard/ring"
)

// layout is where the copies are, as this node sees it.
type layout struct {
	node  string // this one
	meta  Map
	own   *replica.Local
	peers Peers // nil: the node stands alone
}

// pairsFrom returns the pairs of a copy of this node.
func (l *layout) pairsFrom(name string) []pair {
	db, one, here := l.meta.CopyIn(name, l.node)
	rng, _, _, _ := ring.ParseCopyName(name)
	if !here || one.State == ring.StateCopying {
		return nil
	}
	return appendPairs(nil, db, rng, l.node)
}

// pairsTo returns the pairs of this node that push to a copy on a node, by its name. Without a
// node: all pairs of copies that hold some of its documents.
func (l *layout) pairsTo(name, node string) []pair {
	db, _, _ := l.meta.CopyIn(name, l.node)
	rng, _, _, ok := ring.ParseCopyName(name)
	if db == nil || !ok {
		return nil
	}
	return slices.DeleteFunc(pairsOf(db, l.node), func(p pair) bool {
		if node != "" {
			return p.node != node || p.target() != name
		}
		own, _, _, _ := ring.ParseCopyName(p.copy)
		return !own.Overlaps(rng)
	})
}

// holders returns the nodes that push to a copy on a node: those with another one that holds
// some of its documents.
func (l *layout) holders(name, node string) []string {
	db, _, _ := l.meta.CopyIn(name, l.node)
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

// copies returns the copies of a node, nil when it cannot be reached.
func (l *layout) copies(node string) replica.Copies {
	switch {
	case node == l.node:
		return l.own
	case l.peers == nil:
		return nil
	default:
		return l.peers.Copies(node)
	}
}

// end returns the copy of a database on a node as its map has it.
func (l *layout) end(db *meta.Database, name, node string, at replica.Copies) End {
	c, _ := db.Copy(name, node)
	rng, _, _, _ := ring.ParseCopyName(name)
	c.Node = node // also of one that is not in the map
	is := ring.Replica{Range: rng, Copy: c, Name: name, Generation: db.Generation}
	return End{Replica: is, Copy: replica.Of(at, is)}
}

// role returns the work of a push.
func (l *layout) role(db *meta.Database, it *item) role {
	source, _ := db.Copy(it.copy, l.node)
	target, there := db.Copy(it.target(), it.node)
	out := role{
		source: source.ID, target: target.ID, known: db.Generation,
		fills:  there && source.State == ring.StateFull && target.State == ring.StateJoining,
		leaves: there && source.State == ring.StateLeaving && target.State == ring.StateFull,
	}
	out.moved = out.fills && target.Instead == l.node && it.to == ""
	switch {
	case out.fills:
		out.fence = target.ID
	case out.leaves:
		out.fence = source.ID
	}
	return out
}
