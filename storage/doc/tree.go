package doc

import (
	"slices"
	"sort"
)

// Node is one revision in a tree.
type Node struct {
	Rev     Rev
	Deleted bool
	// Stored tells that the content of this revision is on disk. Ancestors
	// that a replicator only named, and revisions whose content compaction
	// dropped, are not stored; whether they were deletions is kept only when
	// it was ever known.
	Stored bool
	// External and Active are sizes in bytes: of the JSON text and attachments
	// as a client sees them, and of what is stored for them.
	External, Active int64
}

// Outcome says what Merge did to a tree.
type Outcome uint8

// The outcomes of Merge.
const (
	Known     Outcome = iota // nothing new; the tree is unchanged
	NewLeaf                  // the revision extends a leaf or is the document's first
	NewBranch                // the revision is a further leaf beside the others
	Filled                   // the revision was known, but its content was not: it is taken over
	Joined                   // the revision and its content were known, but not all of its ancestors
)

// Tree is the forest of a document's revisions. The zero value is empty.
//
//	I1. nodes are in ascending order of (position, id), no two equal, so that
//	    equal sets of revisions have one representation and a parent stands
//	    before its children;
//	I2. a node's parent has the position below its own;
//	I3. inner is set on exactly the nodes that have a child;
//	I4. sizes are 0 where nothing is stored.
//
// A copy of a Tree shares its nodes: use Clone before changing one of both.
type Tree struct {
	nodes []treeNode
}

// treeNode is a node as the tree keeps it.
type treeNode struct {
	id               string
	pos              uint64
	external, active int64
	parent           int32 // index in nodes; noParent for a root
	deleted          bool
	stored           bool
	inner            bool
}

const noParent = -1

// set takes over the content that leaf describes.
func (n *treeNode) set(leaf Node) {
	n.deleted, n.stored = leaf.Deleted, leaf.Stored
	if leaf.Stored {
		n.external, n.active = leaf.External, leaf.Active
	}
}

func (n *treeNode) node() Node {
	return Node{
		Rev: Rev{Pos: n.pos, ID: n.id}, Deleted: n.deleted, Stored: n.stored,
		External: n.external, Active: n.active,
	}
}

// index returns the place of a revision in nodes.
func (t *Tree) index(pos uint64, id string) (int, bool) {
	if len(t.nodes) == 0 || pos < t.nodes[0].pos {
		return 0, false
	}
	// In a tree that is one path the place follows from the position.
	if i := pos - t.nodes[0].pos; i < uint64(len(t.nodes)) {
		if n := &t.nodes[i]; n.pos == pos && n.id == id {
			return int(i), true
		}
	}
	i := sort.Search(len(t.nodes), func(i int) bool { return !t.nodes[i].less(pos, id) })
	return i, i < len(t.nodes) && t.nodes[i].pos == pos && t.nodes[i].id == id
}

// Len returns the number of revisions in the tree.
func (t *Tree) Len() int { return len(t.nodes) }

// Leaves returns all leaves in descending order of (not deleted, position, raw
// id): the winner, the conflicts, the deleted conflicts.
func (t *Tree) Leaves() []Node {
	var live, deleted []Node
	for i := len(t.nodes) - 1; i >= 0; i-- {
		switch n := &t.nodes[i]; {
		case n.inner:
		case n.deleted:
			deleted = append(deleted, n.node())
		default:
			live = append(live, n.node())
		}
	}
	if live == nil {
		return deleted
	}
	return append(live, deleted...)
}

// LeafSizes returns the sums of External and Active over all leaves, in bytes:
// what a Record holds.
func (t *Tree) LeafSizes() (external, active int64) {
	for i := range t.nodes {
		if n := &t.nodes[i]; !n.inner {
			external += n.external
			active += n.active
		}
	}
	return external, active
}

// Find returns the node of r and whether it is a leaf; ok is false when the
// tree does not know r.
func (t *Tree) Find(r Rev) (n Node, leaf, ok bool) {
	i, ok := t.index(r.Pos, r.ID)
	if !ok {
		return Node{}, false, false
	}
	return t.nodes[i].node(), !t.nodes[i].inner, true
}

// Lineage returns r and its ancestors, newest first; nil when r is unknown.
func (t *Tree) Lineage(r Rev) []Node {
	i, ok := t.index(r.Pos, r.ID)
	if !ok {
		return nil
	}
	list := make([]Node, 0, t.depth(i, 0))
	for ; i != noParent; i = int(t.nodes[i].parent) {
		list = append(list, t.nodes[i].node())
	}
	return list
}

// Path returns r and its ancestors as a Path of at most limit ids (0: all);
// the empty Path when r is unknown.
func (t *Tree) Path(r Rev, limit int) Path {
	i, ok := t.index(r.Pos, r.ID)
	if !ok {
		return Path{}
	}
	ids := make([]string, t.depth(i, limit))
	for k := range ids {
		ids[k] = t.nodes[i].id
		i = int(t.nodes[i].parent)
	}
	return Path{Start: r.Pos, IDs: ids}
}

// depth counts node i and its ancestors, up to limit when that is not 0.
func (t *Tree) depth(i, limit int) int {
	n := 0
	for ; i != noParent && (limit <= 0 || n < limit); i = int(t.nodes[i].parent) {
		n++
	}
	return n
}

// LeavesFrom returns the leaves that descend from r, or r itself when it is a
// leaf, in the order of Leaves; nil when r is unknown.
func (t *Tree) LeavesFrom(r Rev) []Node {
	top, ok := t.index(r.Pos, r.ID)
	if !ok {
		return nil
	}
	if !t.nodes[top].inner {
		return []Node{t.nodes[top].node()}
	}
	// By I1 a parent is decided before its children.
	below := make([]bool, len(t.nodes)-top)
	below[0] = true
	var live, deleted []Node
	for i := top + 1; i < len(t.nodes); i++ {
		n := &t.nodes[i]
		if int(n.parent) < top || !below[int(n.parent)-top] {
			continue
		}
		below[i-top] = true
		switch {
		case n.inner:
		case n.deleted:
			deleted = append(deleted, n.node())
		default:
			live = append(live, n.node())
		}
	}
	slices.Reverse(live)
	slices.Reverse(deleted)
	return append(live, deleted...)
}

// Missing returns those of revs that the tree does not know, in their order
// and with their repetitions, and the leaves that one of them may descend
// from: those of a lower position than the highest missing one. Inner
// revisions and tombstones count as known (golden bulk/07).
func (t *Tree) Missing(revs []Rev) (missing, possibleAncestors []Rev) {
	var highest uint64
	for _, r := range revs {
		if _, ok := t.index(r.Pos, r.ID); !ok {
			missing = append(missing, r)
			highest = max(highest, r.Pos)
		}
	}
	if missing == nil {
		return nil, nil
	}
	for _, n := range t.Leaves() {
		if n.Rev.Pos < highest {
			possibleAncestors = append(possibleAncestors, n.Rev)
		}
	}
	return missing, possibleAncestors
}

// SetStored notes whether the content of r is on disk; what is not has no
// sizes. An unknown r is ignored.
func (t *Tree) SetStored(r Rev, stored bool) {
	i, ok := t.index(r.Pos, r.ID)
	if !ok {
		return
	}
	n := &t.nodes[i]
	if n.stored = stored; !stored {
		n.external, n.active = 0, 0
	}
}

// Nodes returns every revision, in ascending order of (position, id).
func (t *Tree) Nodes() []Node {
	if len(t.nodes) == 0 {
		return nil
	}
	list := make([]Node, len(t.nodes))
	for i := range t.nodes {
		list[i] = t.nodes[i].node()
	}
	return list
}

// Equal reports whether both trees hold the same revisions, linked and stored
// in the same way.
func (t *Tree) Equal(o *Tree) bool { return slices.Equal(t.nodes, o.nodes) }

// Clone returns a tree that shares nothing changeable with t. It has space for
// one more revision.
func (t *Tree) Clone() Tree {
	if t.nodes == nil {
		return Tree{}
	}
	return Tree{nodes: append(make([]treeNode, 0, len(t.nodes)+1), t.nodes...)}
}

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

// less is the order of nodes.
func (n *treeNode) less(pos uint64, id string) bool {
	return n.pos < pos || n.pos == pos && n.id < id
}
