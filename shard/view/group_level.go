package view

import (
	"bytes"
	"encoding/binary"
	"slices"

	"divan/shard/view/reduce"
	"divan/storage/fault"
)

// Groups are aggregates with the borders that grouped reductions ask for: one
// entry for the rows whose keys are equal, and for those whose keys, arrays, are
// equal in their first one, two or three elements. So an answer with
// group_level=1, or group=true, reads one entry per group, one behind the other,
// where it would add up blocks and the rows at both ends of each group.
//
// They are worth it only where groups have many rows; otherwise there would be
// as many entries as rows. So each tree keeps those levels at which its groups
// have some rows on average, or none. That is decided whenever all blocks are made
// anew (see viewIndex.Begin); a level is given up when its groups have become small.
//
//	G1  while state.blocks, for each level in treeState.kept there is an entry for
//	    each group that has rows, and no other. It has the number of its rows,
//	    their state for each reducer that did not fail, and the key that the
//	    group shows.
//
// A level that is deeper than any key has the groups of whole keys, which are
// kept once, as level 0.
const (
	groupLevels = 3    // levels of arrays that may be kept
	exactGroups = 0    // the level of whole keys
	groupMark   = 0x80 // a level in the key of a group, which shares the keyspace of blocks
	denseGroups = 8    // rows that the groups of a level have to have on average
)

// keptLevel returns the level at which the entries for a group level of a request are
// kept; ok is false when they are not.
func (t *treeState) keptLevel(groupLevel int) (level int, ok bool) {
	if groupLevel != GroupExact && groupLevel <= t.depth {
		level = groupLevel
	}
	return level, level <= groupLevels && t.kept&(1<<level) != 0
}

// levelsOf returns the levels at which groups of a tree may be kept.
func (t *treeState) levelsOf() []int {
	return []int{exactGroups, 1, 2, 3}[:1+min(t.depth, groupLevels)]
}

// deepen takes in the length of a key, if it is an array; sort is without the
// partition. One element beyond groupLevels says enough.
func (t *treeState) deepen(sort []byte) {
	for t.depth <= groupLevels && len(reduce.GroupSort(sort, t.depth+1)) < len(sort) {
		t.depth++
	}
}

// groupOf returns the part of a sort key, which has the partition where there
// is one, that the rows of its group begin with.
func (t *tree) groupOf(sort []byte, level int) []byte {
	from := t.behindPartition(sort)
	if level == exactGroups {
		level = GroupExact
	}
	return sort[:from+len(reduce.GroupSort(sort[from:], level))]
}

// behindPartition returns where the key begins in a stored sort key.
func (t *tree) behindPartition(sort []byte) int {
	if !t.partitioned {
		return 0
	}
	return bytes.Index(sort, []byte{0, 1}) + 2
}

// appendGroupKey appends the key of a group's entry.
func appendGroupKey(dst []byte, tree, level int, group []byte) []byte {
	return appendBlockKey(dst, tree, groupMark|level, group)
}

// inGroup reports whether a row, or a bound, lies in a group, that is between its
// bytes and these with beyond.
func inGroup(key, group []byte) bool {
	return bytes.HasPrefix(key, group) && (len(key) == len(group) || key[len(group)] < beyond)
}

// behindGroup reports whether a bound lies behind all rows of a group.
func behindGroup(bound, group []byte) bool {
	return bytes.Compare(bound, group) > 0 && !inGroup(bound, group)
}

// groupEntry is the entry of a group. Its parts alias the encoded entry.
type groupEntry struct {
	first, last []byte // keys that it shows, JSON, in ascending and descending order
	block
}

// append appends an entry at a level, with the keys of its first and last row. As
// texts, keys that are one group may differ.
func (g *groupEntry) append(dst []byte, level int) ([]byte, error) {
	first, err := shown(nil, g.first, level)
	if err != nil {
		return dst, err
	}
	last, err := shown(nil, g.last, level)
	if err != nil || bytes.Equal(first, last) {
		last = nil
	}
	for _, key := range [...][]byte{first, last} {
		dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	}
	return appendBlock(dst, g.rows, g.states), err
}

func (g *groupEntry) decode(v []byte, states int) error {
	for _, key := range [...]*[]byte{&g.first, &g.last} {
		n, used := binary.Uvarint(v)
		if used <= 0 || n > uint64(len(v)-used) {
			return fault.New(fault.Corruption, "The index has a malformed group.")
		}
		*key, v = v[used:used+int(n)], v[used+int(n):]
	}
	if len(g.last) == 0 {
		g.last = g.first
	}
	return g.block.decode(v, states)
}

// shown appends the key that a group at a kept level shows for the key of a row.
func shown(dst, key []byte, level int) ([]byte, error) {
	if level == exactGroups {
		return append(dst, key...), nil
	}
	return reduce.AppendGroupKey(dst, key, level)
}

// groupBuilder makes the groups of one level of a tree, while its rows come by in
// their order.
type groupBuilder struct {
	level       int
	most        uint64 // groups, more are given up
	count       uint64
	group       []byte
	first, last []byte
	c           *collector // of what the group has in the blocks before
	from        int        // where its rows begin among those of the block
	some        bool       // there is a group
	key, val    []byte
}

// newGroupBuilders returns those for a tree whose state is known.
func (r *blockBuilder) newGroupBuilders(st *treeState) (out []*groupBuilder) {
	if len(r.t.reducers) == 0 {
		return nil
	}
	for _, level := range st.levelsOf() {
		out = append(out, &groupBuilder{level: level, most: st.rows / r.dense, c: newCollector(r.ctx, r.t)})
	}
	return out
}

// beginRow takes in a row that is about to be added to the block. v is its value.
func (r *blockBuilder) beginRow(key []byte, v *rowValue) error {
	given := false
	for _, g := range r.groups {
		if g.some && inGroup(key, g.group) {
			g.last = append(g.last[:0], v.key...)
			continue
		}
		if err := r.endGroup(g); err != nil {
			return err
		}
		if g.count++; g.count > g.most {
			given = true
			r.drop(g.level)
			continue
		}
		g.some, g.from = true, len(r.open(1).c.list)
		g.group = append(g.group[:0], r.t.groupOf(key[:v.sort], g.level)...)
		g.first, g.last = append(g.first[:0], v.key...), append(g.last[:0], v.key...)
	}
	if given {
		r.groups = slices.DeleteFunc(r.groups, func(g *groupBuilder) bool { return g.count > g.most })
	}
	return nil
}

// endPieces takes in what the groups have in the block, whose rows are going to be
// let go of.
func (r *blockBuilder) endPieces() {
	for _, g := range r.groups {
		r.endPiece(g)
		g.from = 0
	}
}

// endPiece takes in what a group has in the block so far.
func (r *blockBuilder) endPiece(g *groupBuilder) {
	list := r.open(1).c.list
	if from := g.from; g.some && from < len(list) {
		if r.piece == nil {
			r.piece = newCollector(r.ctx, r.t)
		}
		p := r.piece
		p.list, p.rows = list[from:], uint64(len(list)-from)
		g.c.addBlock(&block{rows: p.rows, states: p.finish()})
	}
	g.from = len(list)
}

// endGroup ends the group that is open, and makes its entry.
func (r *blockBuilder) endGroup(g *groupBuilder) (err error) {
	if !g.some {
		return nil
	}
	r.endPiece(g)
	g.key = appendGroupKey(g.key[:0], r.tree, g.level, g.group)
	made := groupEntry{g.first, g.last, block{g.c.rows, g.c.finish()}}
	if g.val, err = made.append(g.val[:0], g.level); err != nil {
		return err
	}
	g.some = false
	g.c.reset()
	return r.set(g.key, g.val)
}
