package doc

import "slices"

// Stem cuts every path from a leaf towards its root to the newest limit
// revisions and returns the nodes that are on no path any more, oldest first.
// Paths that share a revision they both keep stay joined there, others become
// roots of their own (semantics.md 2.7). A limit below 1 is taken as 1: leaves
// always stay.
func (t *Tree) Stem(limit int) []Node {
	limit = max(limit, 1)
	if len(t.nodes) <= limit {
		return nil
	}
	if t.line() {
		return t.cut(len(t.nodes) - limit)
	}
	// reach is how many revisions of a path, the node included, may still be
	// kept from that node upward: the greatest over all leaves below it.
	reach := make([]int, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		if !t.nodes[i].inner {
			reach[i] = limit
		}
		if up := t.nodes[i].parent; up != noParent {
			reach[up] = max(reach[up], reach[i]-1)
		}
	}
	for i := range t.nodes {
		if reach[i] == 1 { // the oldest one of every path it is on
			t.nodes[i].parent = noParent
		}
	}
	return t.keep(func(i int) bool { return reach[i] > 0 })
}

// line reports whether the tree is one path.
func (t *Tree) line() bool {
	for i := range t.nodes {
		if int(t.nodes[i].parent) != i-1 {
			return false
		}
	}
	return true
}

// cut is Stem for a tree that is one path: the oldest n revisions go.
func (t *Tree) cut(n int) []Node {
	removed := make([]Node, n)
	for i := range removed {
		removed[i] = t.nodes[i].node()
	}
	t.nodes = slices.Delete(t.nodes, 0, n)
	for i := range t.nodes {
		t.nodes[i].parent = int32(i - 1)
	}
	return removed
}
