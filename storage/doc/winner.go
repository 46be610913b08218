package doc

// Winner returns the greatest leaf by (not deleted, position, raw id); false
// for an empty tree.
func (t *Tree) Winner() (Node, bool) {
	if len(t.nodes) == 0 {
		return Node{}, false
	}
	// The last node is a leaf, by I1 and I2, and the greatest among equally
	// deleted ones.
	best := len(t.nodes) - 1
	for i := best; i >= 0; i-- {
		if n := &t.nodes[i]; !n.inner && !n.deleted {
			best = i
			break
		}
	}
	return t.nodes[best].node(), true
}
