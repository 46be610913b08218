package doc

import "slices"

// Merge adds the path p, whose newest revision is leaf. leaf.Rev must be
// p.Rev(); an empty path, or one longer than its newest position allows,
// changes nothing.
//
// Where a revision of the path is known already, the two histories are joined
// there, above and below: a path may start above a stored root or fill the gap
// between two roots. A revision that is known with another parent keeps the
// parent it has, and the rest of the path is dropped: a revision's ancestors
// follow from its name, so such a path is wrong.
//
// A revision that was only known as an ancestor takes over leaf's content when
// leaf is stored; one whose content is known keeps it.
//
// Merging paths of one history is commutative, associative and idempotent.
func (t *Tree) Merge(p Path, leaf Node) Outcome {
	depth := len(p.IDs)
	if depth == 0 || uint64(depth-1) > p.Start {
		return Known
	}
	g := graft{t, p}
	at, known := t.index(p.Start, p.IDs[0])
	if !known {
		return g.mergeNew(leaf)
	}
	outcome := Known
	if n := &t.nodes[at]; leaf.Stored && !n.stored {
		n.set(leaf)
		outcome = Filled
	}
	if g.join(0, at) && outcome == Known {
		outcome = Joined
	}
	return outcome
}

// Add is Merge followed by Stem, as an update needs them. It answers Known
// when the tree ends up as it was, also when the path named ancestors that the
// limit cuts off at once: repeating an edit then changes nothing. The content
// of the edit has to be stored for NewLeaf, NewBranch and Filled, and the
// removed nodes, oldest first, are no longer part of the document.
func (t *Tree) Add(p Path, leaf Node, limit int) (Outcome, []Node) {
	var before Tree
	n, _, known := t.Find(p.Rev())
	if known = known && (n.Stored || !leaf.Stored); known {
		before = t.Clone()
	}
	outcome := t.Merge(p, leaf)
	if outcome == Known {
		return Known, nil
	}
	removed := t.Stem(limit)
	if known && t.Equal(&before) {
		return Known, nil
	}
	return outcome, removed
}

// graft is one path, p, being added to a tree.
type graft struct {
	t *Tree
	p Path
}

// mergeNew adds a path whose newest revision is unknown.
func (g graft) mergeNew(leaf Node) Outcome {
	fresh, at, known := g.unknownFrom(0)
	if known && g.join(fresh, at) {
		// Joining moved the nodes: find the place again.
		at, _ = g.t.index(g.p.Start-uint64(fresh), g.p.IDs[fresh])
	}
	outcome := NewBranch
	if len(g.t.nodes) == 0 || known && !g.t.nodes[at].inner {
		outcome = NewLeaf
	}
	parent := noParent
	if known {
		parent = at
	}
	newest := g.insertRun(0, fresh, parent)
	g.t.nodes[newest].set(leaf)
	return outcome
}

// unknownFrom counts the revisions of p from p.IDs[from] on that the tree does
// not know, and tells the place of the known one that follows them.
func (g graft) unknownFrom(from int) (n, at int, known bool) {
	for i := from; i < len(g.p.IDs); i++ {
		pos := g.p.Start - uint64(i)
		if len(g.t.nodes) == 0 || pos < g.t.nodes[0].pos {
			break
		}
		if at, known = g.t.index(pos, g.p.IDs[i]); known {
			return i - from, at, true
		}
	}
	return len(g.p.IDs) - from, 0, false
}

// join follows p from p.IDs[k], which stands at place at, towards its oldest
// revision, and adds what the tree does not know above its roots. It reports
// whether the tree changed.
func (g graft) join(k, at int) bool {
	changed := false
	for k+1 < len(g.p.IDs) {
		if up := int(g.t.nodes[at].parent); up != noParent {
			if g.t.nodes[up].id != g.p.IDs[k+1] {
				return changed
			}
			at, k = up, k+1
			continue
		}
		fresh, above, known := g.unknownFrom(k + 1)
		if !known {
			above = noParent
		}
		if fresh > 0 {
			oldest := k + fresh
			above = g.insertRun(k+1, fresh, above)
			at, _ = g.t.index(g.p.Start-uint64(k), g.p.IDs[k])
			g.adopt(at, above)
			if !known {
				return true
			}
			k = oldest
			at, _ = g.t.index(g.p.Start-uint64(k), g.p.IDs[k])
			at = int(g.t.nodes[at].parent)
		} else {
			g.adopt(at, above)
			at = above
		}
		k++
		changed = true
	}
	return changed
}

// adopt makes the node at parent the parent of the root at child.
func (g graft) adopt(child, parent int) {
	g.t.nodes[child].parent = int32(parent)
	g.t.nodes[parent].inner = true
}

// insertRun adds the count revisions p.IDs[from:], none of which is known, as
// one line below the node at place parent (noParent: as a root), and returns
// the place of the newest. Other places change as well.
func (g graft) insertRun(from, count, parent int) int {
	if count == 0 {
		return parent
	}
	old := len(g.t.nodes)
	first := g.p.Start - uint64(from+count-1)
	// Usual: the run continues the newest revision of all.
	if old == 0 || g.t.nodes[old-1].less(first, g.p.IDs[from+count-1]) {
		g.t.nodes = slices.Grow(g.t.nodes, count)
		for i := count - 1; i >= 0; i-- {
			g.t.nodes = append(g.t.nodes, treeNode{
				id: g.p.IDs[from+i], pos: g.p.Start - uint64(from+i), parent: int32(parent), inner: i > 0,
			})
			if parent != noParent {
				g.t.nodes[parent].inner = true
			}
			parent = len(g.t.nodes) - 1
		}
		return parent
	}
	return g.interleave(from, count, parent)
}

// interleave is insertRun for a run that lies between the known nodes: one
// merge of two ascending lists, then the parents follow their nodes.
func (g graft) interleave(from, count, parent int) int {
	merged := make([]treeNode, 0, len(g.t.nodes)+count)
	moved := make([]int32, len(g.t.nodes)) // old place → new place
	above := int32(noParent)
	next := 0
	for i := count - 1; i >= 0; i-- {
		n := treeNode{id: g.p.IDs[from+i], pos: g.p.Start - uint64(from+i), inner: i > 0}
		for ; next < len(g.t.nodes) && g.t.nodes[next].less(n.pos, n.id); next++ {
			moved[next] = int32(len(merged))
			merged = append(merged, g.t.nodes[next].movedBy(moved))
		}
		if i == count-1 && parent != noParent {
			above = moved[parent]
			merged[above].inner = true
		}
		n.parent = above
		above = int32(len(merged))
		merged = append(merged, n)
	}
	for ; next < len(g.t.nodes); next++ {
		moved[next] = int32(len(merged))
		merged = append(merged, g.t.nodes[next].movedBy(moved))
	}
	g.t.nodes = merged
	return int(above)
}

// movedBy returns the node with its parent at the place it moved to.
func (n treeNode) movedBy(moved []int32) treeNode {
	if n.parent != noParent {
		n.parent = moved[n.parent]
	}
	return n
}

func (n *treeNode) rev() Rev { return Rev{Pos: n.pos, ID: n.id} }
