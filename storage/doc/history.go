package doc

// A history that is one long path is kept in two places: the newest revisions in the
// record of the document, those before them in blocks, which an edit does not touch. An
// edit of a document with a thousand revisions then writes some dozens of them.

// blockLen is how many positions a block covers: block n those from n*blockLen on.
const blockLen = 32

// minTip is how many revisions a record keeps at least beside blocks. It has up to blockLen
// - 1 more.
const minTip = 16

// Below says which revisions of a document are in blocks: those at positions from Floor
// on and before Tip, a multiple of blockLen. What a block has below Floor is cut off and
// counts no more. The zero value: none are.
type Below struct{ Floor, Tip uint64 }

// Blocks returns the numbers of the blocks: from first on, end is the first that is none.
func (b Below) Blocks() (first, end uint64) { return b.Floor / blockLen, b.Tip / blockLen }

// BlockOf returns the number of the block that a position is in.
func BlockOf(pos uint64) uint64 { return pos / blockLen }

// tipOf returns where the part of a path that stays in the record begins, when its newest
// revision has that position.
func tipOf(newest uint64) uint64 {
	if newest < minTip {
		return 0
	}
	return (newest - (minTip - 1)) / blockLen * blockLen
}

// BlockWriter takes changes of the blocks of a document.
type BlockWriter interface {
	PutBlock(number uint64, block []byte)
	DeleteBlock(number uint64)
}

// NeedsBlocks reports whether Settle puts revisions of r into blocks where none are yet.
func (r *Record) NeedsBlocks() bool { return r.Below == (Below{}) && r.settled() != (Below{}) }

// MayHaveBlocks reports whether revisions of a document with that winner may be in blocks: only
// a history that is one path has some, and the winner ends it.
func MayHaveBlocks(winner Rev) bool { return tipOf(winner.Pos) > 0 }

// settled returns what Settle sets Below to.
func (r *Record) settled() Below {
	if len(r.Tree.nodes) == 0 {
		return r.Below
	}
	newest := r.Tree.nodes[len(r.Tree.nodes)-1].pos
	if r.Partial {
		return Below{Floor: r.Below.Floor, Tip: max(r.Below.Tip, tipOf(newest))}
	}
	root := r.Tree.nodes[0].pos
	if tip := tipOf(newest); tip+1 >= root+blockLen && r.Tree.line() { // block 0 has no position 0
		return Below{Floor: root, Tip: tip}
	}
	return Below{}
}

// Settle decides which revisions of r are kept in blocks, sets Below to it, and hands what
// has to be written beside the record to w. old is the record as it is stored, nil when there
// is none. When r is Partial, so is old, or it was when it was read.
func (r *Record) Settle(old *Record, w BlockWriter) {
	var was Below
	if old != nil {
		was = old.Below
	}
	from, next := r.Below.Tip, r.settled()
	if !r.Partial {
		from = next.Floor
	}
	r.Below = next
	first, end := next.Blocks()
	for n, stop := was.Blocks(); n < stop; n++ {
		if n < first || n >= end {
			w.DeleteBlock(n)
		}
	}
	for n := BlockOf(from); n < end && next != (Below{}); n++ {
		w.PutBlock(n, r.Tree.appendBlock(nil, n))
	}
}

// setTip sets Below.Tip of a record that has been read without its blocks; false when the
// two do not fit together.
func (r *Record) setTip() bool {
	if len(r.Tree.nodes) == 0 || !r.Tree.line() {
		return false
	}
	r.Below.Tip = r.Tree.nodes[0].pos
	return r.Below.Floor > 0 && r.Below.Floor < r.Below.Tip && r.Below.Tip%blockLen == 0
}

// Widen makes a record whole that is Partial: history has what is in blocks.
// The error is fault.Corruption when it does not.
func (r *Record) Widen(history *Tree) error {
	whole, err := r.Below.Join(history, &r.Tree)
	if err == nil {
		r.Tree, r.Partial = whole, false
	}
	return err
}

// part returns what b says of a tree that has it and perhaps older revisions. The error is
// fault.Corruption when it has not.
func (b Below) part(history *Tree) ([]treeNode, error) {
	nodes := history.nodes
	if len(nodes) == 0 || nodes[0].pos > b.Floor || nodes[0].pos+uint64(len(nodes)) != b.Tip || b.Floor >= b.Tip {
		return nil, damaged("history")
	}
	return nodes[b.Floor-nodes[0].pos:], nil
}

// Join returns the tree of what is in blocks and of what goes on from there. Both are left as
// they are. The error is fault.Corruption when history is not what b says.
func (b Below) Join(history, tip *Tree) (Tree, error) {
	older, err := b.part(history)
	if err != nil {
		return Tree{}, err
	}
	whole := Tree{nodes: make([]treeNode, 0, len(older)+len(tip.nodes)+1)}
	if err := whole.Append(&Tree{nodes: older}); err != nil {
		return Tree{}, err
	}
	return whole, whole.Append(tip)
}

// AppendIDs appends the ids of what is in blocks, newest first. The error is
// fault.Corruption when history is not what b says.
func (b Below) AppendIDs(ids []string, history *Tree) ([]string, error) {
	older, err := b.part(history)
	for i := len(older) - 1; i >= 0; i-- {
		ids = append(ids, older[i].id)
	}
	return ids, err
}

// Space returns an empty tree with space for what is in blocks, within reason: b may be damaged.
func (b Below) Space() Tree {
	const most = 4096
	return Tree{nodes: make([]treeNode, 0, min(b.Tip-b.Floor, most))}
}

// The first byte of an encoded block: version and flags.
const blockVersion = 0x10

// appendBlock appends the stored form of a block of a tree that is one path: its version,
// then those of its revisions that are there as a tree.
func (t *Tree) appendBlock(dst []byte, number uint64) []byte {
	root := t.nodes[0].pos
	lo, hi := max(number*blockLen, root)-root, (number+1)*blockLen-root
	return t.appendPart(append(dst, blockVersion), int(lo), int(hi))
}

// AddBlock adds a stored block to a tree that holds the older ones, without what is below
// floor. The error is fault.Corruption; the tree is then of no use.
func (t *Tree) AddBlock(number uint64, block []byte, floor uint64) error {
	r := reader{b: block}
	var part Tree
	if r.byte()&versionMask != blockVersion {
		return damaged("block of a history")
	}
	r.tree(&part)
	if r.bad || len(r.b) != 0 || len(part.nodes) == 0 || !part.line() {
		return damaged("block of a history")
	}
	lo, hi := part.nodes[0].pos, part.nodes[len(part.nodes)-1].pos
	if BlockOf(lo) != number || hi != (number+1)*blockLen-1 || lo > max(floor, number*blockLen) {
		return damaged("block of a history")
	}
	if lo < floor {
		part.nodes = part.nodes[min(floor-lo, uint64(len(part.nodes))):]
	}
	return t.Append(&part)
}

// Append adds a path to a tree that is one and ends right before it. The error is
// fault.Corruption when it does not.
func (t *Tree) Append(p *Tree) error {
	if len(p.nodes) == 0 {
		return nil
	}
	n := len(t.nodes)
	if n > 0 {
		if t.nodes[n-1].pos+1 != p.nodes[0].pos {
			return damaged("history")
		}
		t.nodes[n-1].inner = true
	}
	t.nodes = append(t.nodes, p.nodes...)
	for i := n; i < len(t.nodes); i++ {
		t.nodes[i].parent = int32(i - 1)
	}
	return nil
}

// At returns the revision at a position of a tree that is one path; false when it has none.
func (t *Tree) At(pos uint64) (Node, bool) {
	if len(t.nodes) == 0 || pos < t.nodes[0].pos || pos-t.nodes[0].pos >= uint64(len(t.nodes)) {
		return Node{}, false
	}
	return t.nodes[pos-t.nodes[0].pos].node(), true
}
