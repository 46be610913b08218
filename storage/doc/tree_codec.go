package doc

import "encoding/binary"

// A tree is stored as
//
//	uvarint number of nodes; when that is not 0:
//	uvarint length of the ids, then the ids, one after the other
//	for each node: byte flags
//	    nodeRoot:   uvarint position
//	    nodeFar:    uvarint distance back to the parent (default: 1)
//	    nodeLongID: uvarint length of the id (default: 16)
//	    nodeStored: uvarint external, uvarint active
//
// in the order of Tree.nodes. A path without branches therefore costs 17 bytes
// a revision and two or more for the sizes of each stored one. All ids are
// slices of one string after decoding.
const (
	nodeDeleted = 1 << iota
	nodeStored
	nodeRoot
	nodeFar
	nodeLongID
)

func (t *Tree) appendBinary(dst []byte) []byte { return t.appendPart(dst, 0, len(t.nodes)) }

// appendPart appends the nodes from place from on and before place to as a tree of their own.
// It is a whole tree, or a part of one that is one path.
func (t *Tree) appendPart(dst []byte, from, to int) []byte {
	dst = binary.AppendUvarint(dst, uint64(to-from))
	if from == to {
		return dst
	}
	size := 0
	for i := from; i < to; i++ {
		size += len(t.nodes[i].id)
	}
	dst = binary.AppendUvarint(dst, uint64(size))
	for i := from; i < to; i++ {
		dst = append(dst, t.nodes[i].id...)
	}
	for i := from; i < to; i++ {
		dst = t.nodes[i].appendBinary(dst, i, from)
	}
	return dst
}

// appendBinary appends the node at a place, in a tree that begins at place from.
func (n *treeNode) appendBinary(dst []byte, place, from int) []byte {
	var flags byte
	if n.deleted {
		flags |= nodeDeleted
	}
	if n.stored {
		flags |= nodeStored
	}
	switch {
	case int(n.parent) < from: // noParent is below every place
		flags |= nodeRoot
	case int(n.parent) != place-1:
		flags |= nodeFar
	}
	if len(n.id) != rawIDLen {
		flags |= nodeLongID
	}
	dst = append(dst, flags)
	switch {
	case flags&nodeRoot != 0:
		dst = binary.AppendUvarint(dst, n.pos)
	case flags&nodeFar != 0:
		dst = binary.AppendUvarint(dst, uint64(place)-uint64(n.parent))
	}
	if flags&nodeLongID != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(n.id)))
	}
	if n.stored {
		dst = binary.AppendUvarint(dst, uint64(n.external))
		dst = binary.AppendUvarint(dst, uint64(n.active))
	}
	return dst
}

// tree reads what Tree.appendBinary wrote and holds it to the invariants I1
// and I2, so that damaged bytes cannot make a tree that loops.
func (r *reader) tree(t *Tree) {
	count := r.uvarint()
	if count == 0 {
		return
	}
	raw := r.bytes()
	if count > uint64(len(r.b)) { // each node takes at least its flags
		r.fail()
		return
	}
	ids := string(raw)
	nodes := make([]treeNode, count, count+1) // space for the usual edit
	for i := range nodes {
		n := &nodes[i]
		flags := r.byte()
		n.deleted = flags&nodeDeleted != 0
		n.stored = flags&nodeStored != 0
		if !r.place(nodes, i, flags) {
			r.fail()
			return
		}
		size := uint64(rawIDLen)
		if flags&nodeLongID != 0 {
			size = r.uvarint()
		}
		if size > uint64(len(ids)) {
			r.fail()
			return
		}
		n.id, ids = ids[:size], ids[size:]
		if i > 0 && !nodes[i-1].less(n.pos, n.id) {
			r.fail()
			return
		}
		if n.stored {
			n.external = int64(r.uvarint())
			n.active = int64(r.uvarint())
		}
	}
	if r.bad || ids != "" {
		r.fail()
		return
	}
	t.nodes = nodes
}

// branched reports whether the tree has more than one leaf: in the order of
// Tree.nodes every node of a path but the first follows its parent.
func (r *reader) branched() bool {
	branched := false
	r.eachNode(func(i uint64, flags byte) bool {
		branched = i > 0 && flags&(nodeRoot|nodeFar) != 0
		return !branched
	})
	return branched
}

// stored counts the nodes whose content is stored.
func (r *reader) stored() (n int) {
	r.eachNode(func(_ uint64, flags byte) bool {
		if flags&nodeStored != 0 {
			n++
		}
		return true
	})
	return n
}

// eachNode calls fn with the flags of every node until it returns false. What is
// damaged ends it: what decodes the tree says so.
func (r *reader) eachNode(fn func(i uint64, flags byte) bool) {
	count := r.uvarint()
	if count == 0 {
		return
	}
	r.bytes()
	for i := range count {
		flags := r.byte()
		if r.bad || !fn(i, flags) {
			return
		}
		if flags&(nodeRoot|nodeFar) != 0 {
			r.uvarint()
		}
		if flags&nodeLongID != 0 {
			r.uvarint()
		}
		if flags&nodeStored != 0 {
			r.uvarint()
			r.uvarint()
		}
	}
}

// place reads where node i hangs: its position and its parent.
func (r *reader) place(nodes []treeNode, i int, flags byte) bool {
	n := &nodes[i]
	if flags&nodeRoot != 0 {
		n.parent = noParent
		n.pos = r.uvarint()
		return !r.bad
	}
	back := uint64(1)
	if flags&nodeFar != 0 {
		back = r.uvarint()
	}
	if back == 0 || back > uint64(i) {
		return false
	}
	n.parent = int32(i - int(back))
	up := &nodes[n.parent]
	up.inner = true
	n.pos = up.pos + 1
	return n.pos != 0
}
