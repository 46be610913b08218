package doc

// Prune removes those of revs that are leaves, each with the ancestors that
// then have no other descendant, as purging does (golden bulk/08): an inner or
// unknown revision is ignored, also when its descendants are purged with it.
// It returns the leaves removed, in the order of revs, and all removed nodes,
// oldest first.
func (t *Tree) Prune(revs []Rev) (purged []Rev, removed []Node) {
	gone := make([]bool, len(t.nodes))
	for _, r := range revs {
		if i, ok := t.index(r.Pos, r.ID); ok && !t.nodes[i].inner && !gone[i] {
			gone[i] = true
			purged = append(purged, t.nodes[i].rev())
		}
	}
	if purged == nil {
		return nil, nil
	}
	// A node stays when it is a leaf that was not named, or above one.
	stays := make([]bool, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		if !t.nodes[i].inner && !gone[i] {
			stays[i] = true
		}
		if up := t.nodes[i].parent; up != noParent && stays[i] {
			stays[up] = true
		}
	}
	return purged, t.keep(func(i int) bool { return stays[i] })
}

// keep removes the nodes that stays does not hold for and returns them, oldest
// first. A kept node below a removed one becomes a root.
func (t *Tree) keep(stays func(i int) bool) []Node {
	var removed []Node
	moved := make([]int32, len(t.nodes))
	kept := make([]treeNode, 0, len(t.nodes))
	for i := range t.nodes {
		if !stays(i) {
			moved[i] = noParent
			removed = append(removed, t.nodes[i].node())
			continue
		}
		moved[i] = int32(len(kept))
		kept = append(kept, t.nodes[i].movedBy(moved))
	}
	if removed != nil {
		t.nodes = kept
	}
	return removed
}
