package meta

import "iter"

// Databases is the set of databases at one moment, sorted by the bytes of
// their names. It is immutable and costs nothing to keep. Internally it is a
// weight-balanced tree whose nodes are shared between versions, so a change
// copies O(log n) nodes, and the place of a name is found in O(log n).
type Databases struct{ root *treeNode }

type treeNode struct {
	left, right *treeNode
	size        int
	db          *Database
}

// Weight-balanced trees with these factors need at most one single or double
// rotation after one insertion or deletion (Hirai and Yamamoto, 2011).
const (
	delta = 3
	gamma = 2
)

// Len returns the number of databases.
func (d Databases) Len() int { return size(d.root) }

// Get returns a database by name.
func (d Databases) Get(name string) (*Database, bool) {
	for n := d.root; n != nil; {
		switch {
		case name < n.db.Name:
			n = n.left
		case name > n.db.Name:
			n = n.right
		default:
			return n.db, true
		}
	}
	return nil, false
}

// Index returns how many names sort before name.
func (d Databases) Index(name string) int {
	index := 0
	for n := d.root; n != nil; {
		if n.db.Name < name {
			index += size(n.left) + 1
			n = n.right
		} else {
			n = n.left
		}
	}
	return index
}

// Slice yields the databases number lo up to but without hi; both are cut to
// what there is.
func (d Databases) Slice(lo, hi int) iter.Seq[*Database] {
	lo, hi = max(lo, 0), min(hi, d.Len())
	return func(yield func(*Database) bool) {
		if lo < hi {
			ascend(d.root, lo, hi, yield)
		}
	}
}

// Backward yields the same databases as Slice, the last one first.
func (d Databases) Backward(lo, hi int) iter.Seq[*Database] {
	lo, hi = max(lo, 0), min(hi, d.Len())
	return func(yield func(*Database) bool) {
		if lo < hi {
			descend(d.root, lo, hi, yield)
		}
	}
}

// All yields every database.
func (d Databases) All() iter.Seq[*Database] { return d.Slice(0, d.Len()) }

func ascend(n *treeNode, lo, hi int, yield func(*Database) bool) bool {
	if n == nil || hi <= 0 || lo >= n.size {
		return true
	}
	at := size(n.left)
	return (lo >= at || ascend(n.left, lo, hi, yield)) &&
		(at < lo || at >= hi || yield(n.db)) &&
		ascend(n.right, lo-at-1, hi-at-1, yield)
}

func descend(n *treeNode, lo, hi int, yield func(*Database) bool) bool {
	if n == nil || hi <= 0 || lo >= n.size {
		return true
	}
	at := size(n.left)
	return descend(n.right, lo-at-1, hi-at-1, yield) &&
		(at < lo || at >= hi || yield(n.db)) &&
		(lo >= at || descend(n.left, lo, hi, yield))
}

// with returns the set with db added, in the place of one of the same name.
func (d Databases) with(db *Database) Databases { return Databases{insert(d.root, db)} }

// without returns the set without the database of that name.
func (d Databases) without(name string) Databases { return Databases{remove(d.root, name)} }

func size(n *treeNode) int {
	if n == nil {
		return 0
	}
	return n.size
}

func join(l *treeNode, db *Database, r *treeNode) *treeNode {
	return &treeNode{left: l, right: r, size: size(l) + size(r) + 1, db: db}
}

// balance joins two trees of which one has gained or the other lost one node
// since they were in balance.
func balance(l *treeNode, db *Database, r *treeNode) *treeNode {
	switch ls, rs := size(l), size(r); {
	case ls+rs <= 1:
	case rs > delta*ls:
		if size(r.left) < gamma*size(r.right) {
			return join(join(l, db, r.left), r.db, r.right)
		}
		rl := r.left
		return join(join(l, db, rl.left), rl.db, join(rl.right, r.db, r.right))
	case ls > delta*rs:
		if size(l.right) < gamma*size(l.left) {
			return join(l.left, l.db, join(l.right, db, r))
		}
		lr := l.right
		return join(join(l.left, l.db, lr.left), lr.db, join(lr.right, db, r))
	}
	return join(l, db, r)
}

func insert(n *treeNode, db *Database) *treeNode {
	switch {
	case n == nil:
		return join(nil, db, nil)
	case db.Name < n.db.Name:
		return balance(insert(n.left, db), n.db, n.right)
	case db.Name > n.db.Name:
		return balance(n.left, n.db, insert(n.right, db))
	default:
		return join(n.left, db, n.right)
	}
}

func remove(n *treeNode, name string) *treeNode {
	switch {
	case n == nil:
		return nil
	case name < n.db.Name:
		return balance(remove(n.left, name), n.db, n.right)
	case name > n.db.Name:
		return balance(n.left, n.db, remove(n.right, name))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	}
	if n.left.size > n.right.size {
		rest, db := removeMax(n.left)
		return balance(rest, db, n.right)
	}
	rest, db := removeMin(n.right)
	return balance(n.left, db, rest)
}

func removeMin(n *treeNode) (*treeNode, *Database) {
	if n.left == nil {
		return n.right, n.db
	}
	l, db := removeMin(n.left)
	return balance(l, n.db, n.right), db
}

func removeMax(n *treeNode) (*treeNode, *Database) {
	if n.right == nil {
		return n.left, n.db
	}
	r, db := removeMax(n.right)
	return balance(n.left, n.db, r), db
}
