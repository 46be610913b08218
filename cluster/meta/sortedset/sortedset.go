// Package sortedset is an immutable sorted set, of which a change makes a new one that
// shares most of its memory with the old one.
package sortedset

import "iter"

// Item is an element of a set.
type Item interface {
	SortKey() string // by its bytes the set is sorted; no two items have the same
	Marked() bool    // Marked yields it
}

// Set is sorted. It is immutable and costs nothing to keep. Internally it is a
// weight-balanced tree whose nodes are shared between versions, so a change
// copies O(log n) nodes, and the place of a key is found in O(log n). The zero value is
// empty.
type Set[T Item] struct{ root *node[T] }

type node[T Item] struct {
	left, right *node[T]
	size        int
	marked      int // items below that are
	item        T
}

// Weight-balanced trees with these factors need at most one single or double
// rotation after one insertion or deletion (Hirai and Yamamoto, 2011).
const (
	delta = 3
	gamma = 2
)

// Len returns the number of items.
func (s Set[T]) Len() int { return size(s.root) }

// Get returns an item by key.
func (s Set[T]) Get(key string) (T, bool) {
	for n := s.root; n != nil; {
		switch {
		case key < n.item.SortKey():
			n = n.left
		case key > n.item.SortKey():
			n = n.right
		default:
			return n.item, true
		}
	}
	var none T
	return none, false
}

// Index returns how many keys sort before key.
func (s Set[T]) Index(key string) int {
	index := 0
	for n := s.root; n != nil; {
		if n.item.SortKey() < key {
			index += size(n.left) + 1
			n = n.right
		} else {
			n = n.left
		}
	}
	return index
}

// Slice yields the items number lo up to but without hi; both are cut to
// what there is.
func (s Set[T]) Slice(lo, hi int) iter.Seq[T] {
	lo, hi = max(lo, 0), min(hi, s.Len())
	return func(yield func(T) bool) {
		if lo < hi {
			ascend(s.root, lo, hi, yield)
		}
	}
}

// Backward yields the same items as Slice, the last one first.
func (s Set[T]) Backward(lo, hi int) iter.Seq[T] {
	lo, hi = max(lo, 0), min(hi, s.Len())
	return func(yield func(T) bool) {
		if lo < hi {
			descend(s.root, lo, hi, yield)
		}
	}
}

// All yields every item.
func (s Set[T]) All() iter.Seq[T] { return s.Slice(0, s.Len()) }

func ascend[T Item](n *node[T], lo, hi int, yield func(T) bool) bool {
	if n == nil || hi <= 0 || lo >= n.size {
		return true
	}
	at := size(n.left)
	return (lo >= at || ascend(n.left, lo, hi, yield)) &&
		(at < lo || at >= hi || yield(n.item)) &&
		ascend(n.right, lo-at-1, hi-at-1, yield)
}

func descend[T Item](n *node[T], lo, hi int, yield func(T) bool) bool {
	if n == nil || hi <= 0 || lo >= n.size {
		return true
	}
	at := size(n.left)
	return descend(n.right, lo-at-1, hi-at-1, yield) &&
		(at < lo || at >= hi || yield(n.item)) &&
		(lo >= at || descend(n.left, lo, hi, yield))
}

// Marked yields the items that are marked; it costs nothing while there are
// none.
func (s Set[T]) Marked() iter.Seq[T] {
	return func(yield func(T) bool) { ascendMarked(s.root, yield) }
}

func ascendMarked[T Item](n *node[T], yield func(T) bool) bool {
	if marked(n) == 0 {
		return true
	}
	return ascendMarked(n.left, yield) && (!n.item.Marked() || yield(n.item)) && ascendMarked(n.right, yield)
}

func marked[T Item](n *node[T]) int {
	if n == nil {
		return 0
	}
	return n.marked
}

// With returns the set with item added, in the place of one of the same key.
func (s Set[T]) With(item T) Set[T] { return Set[T]{insert(s.root, item)} }

// Without returns the set without the item of that key.
func (s Set[T]) Without(key string) Set[T] { return Set[T]{remove(s.root, key)} }

func size[T Item](n *node[T]) int {
	if n == nil {
		return 0
	}
	return n.size
}

func join[T Item](l *node[T], item T, r *node[T]) *node[T] {
	n := &node[T]{left: l, right: r, size: size(l) + size(r) + 1, marked: marked(l) + marked(r), item: item}
	if item.Marked() {
		n.marked++
	}
	return n
}

// balance joins two trees of which one has gained or the other lost one node
// since they were in balance.
func balance[T Item](l *node[T], item T, r *node[T]) *node[T] {
	switch ls, rs := size(l), size(r); {
	case ls+rs <= 1:
	case rs > delta*ls:
		if size(r.left) < gamma*size(r.right) {
			return join(join(l, item, r.left), r.item, r.right)
		}
		rl := r.left
		return join(join(l, item, rl.left), rl.item, join(rl.right, r.item, r.right))
	case ls > delta*rs:
		if size(l.right) < gamma*size(l.left) {
			return join(l.left, l.item, join(l.right, item, r))
		}
		lr := l.right
		return join(join(l.left, l.item, lr.left), lr.item, join(lr.right, item, r))
	}
	return join(l, item, r)
}

func insert[T Item](n *node[T], item T) *node[T] {
	switch {
	case n == nil:
		return join(nil, item, nil)
	case item.SortKey() < n.item.SortKey():
		return balance(insert(n.left, item), n.item, n.right)
	case item.SortKey() > n.item.SortKey():
		return balance(n.left, n.item, insert(n.right, item))
	default:
		return join(n.left, item, n.right)
	}
}

func remove[T Item](n *node[T], key string) *node[T] {
	switch {
	case n == nil:
		return nil
	case key < n.item.SortKey():
		return balance(remove(n.left, key), n.item, n.right)
	case key > n.item.SortKey():
		return balance(n.left, n.item, remove(n.right, key))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	}
	if n.left.size > n.right.size {
		rest, item := removeMax(n.left)
		return balance(rest, item, n.right)
	}
	rest, item := removeMin(n.right)
	return balance(n.left, item, rest)
}

func removeMin[T Item](n *node[T]) (*node[T], T) {
	if n.left == nil {
		return n.right, n.item
	}
	l, item := removeMin(n.left)
	return balance(l, n.item, n.right), item
}

func removeMax[T Item](n *node[T]) (*node[T], T) {
	if n.right == nil {
		return n.left, n.item
	}
	r, item := removeMax(n.right)
	return balance(n.left, n.item, r), item
}

// Of returns the set of some items, which are sorted.
func Of[T Item](items []T) Set[T] { return Set[T]{build(items)} }

// build makes a balanced tree.
func build[T Item](items []T) *node[T] {
	if len(items) == 0 {
		return nil
	}
	at := len(items) / 2
	return join(build(items[:at]), items[at], build(items[at+1:]))
}
