package view

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"divan/storage"
)

// rebuildBlocks makes all blocks and groups of an index anew, by one scan of each
// tree.
func (v *viewIndex) rebuildBlocks(ctx context.Context, x *storage.Index, st *state) error {
	snap, err := x.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0)) // each holds some blocks in memory
	for t := range v.trees {
		g.Go(func() error {
			b := x.NewBatch(false)
			defer b.Close()
			prefix := appendTree(nil, spaceBlocks, t)
			b.DeleteRange(prefix, keyEnd(prefix))
			r := blockBuilder{
				ctx: ctx, tree: t, t: &v.trees[t], dense: v.dense,
				set: func(key, value []byte) error {
					if b.Set(key, value); b.Len() < commitBytes {
						return nil
					}
					return b.Commit(ctx)
				},
				drop: func(level int) {
					prefix := appendGroupKey(nil, t, level, nil)
					b.DeleteRange(prefix, keyEnd(prefix))
				},
			}
			err := r.build(snap, &st.trees[t])
			if err == nil {
				err = b.Commit(ctx)
			}
			return err
		})
	}
	return g.Wait()
}

// blockBuilder makes the blocks of one tree from its rows, in their order, and its
// groups.
type blockBuilder struct {
	ctx    context.Context
	tree   int
	t      *tree
	dense  uint64                        // denseGroups
	set    func(key, value []byte) error // takes a block, or a group
	drop   func(level int)               // takes back the groups of a level
	levels []openBlock                   // by level, from 1 on
	groups []*groupBuilder
	piece  *collector // of what a group has in one block
	key    []byte
	val    []byte
	made   block
}

// openBlock is the block of a level that the scan is in.
type openBlock struct {
	border []byte
	c      *collector
}

// commitBytes is when a batch of blocks is committed; askContext, after how many
// rows the context is asked.
const (
	commitBytes = 1 << 20
	askContext  = 1024
)

// build makes everything, and says in the state of the tree what there is.
func (r *blockBuilder) build(snap *storage.IndexSnapshot, st *treeState) (err error) {
	rows := appendTree(nil, spaceRows, r.tree)
	it, err := snap.Iterate(rows, keyEnd(rows))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	r.groups = r.newGroupBuilders(st)
	st.height, st.built, st.kept, st.groups = 0, st.rows, 0, [len(st.groups)]uint64{}
	for n, ok := 1, it.First(); ok; n, ok = n+1, it.Next() {
		if n%askContext == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		value, err := it.Value()
		if err != nil {
			return err
		}
		if err := r.row(it.Key()[treePrefix:], value, st); err != nil {
			return err
		}
	}
	if err := it.Err(); err != nil {
		return err
	}
	for _, g := range r.groups {
		if err := r.endGroup(g); err != nil {
			return err
		}
		if g.count > 0 {
			st.kept |= 1 << g.level
			st.groups[g.level] = g.count
		}
	}
	return r.close(st.height+1, nil)
}

// row takes in the next row.
func (r *blockBuilder) row(key, value []byte, st *treeState) error {
	if level := levelOf(key); level > 0 {
		st.height = max(st.height, level)
		if err := r.close(level, key); err != nil {
			return err
		}
	}
	if len(r.groups) > 0 {
		v, err := decodeRowValue(value)
		if err != nil || v.sort > len(key) {
			return errRow()
		}
		if err := r.beginRow(key, &v); err != nil {
			return err
		}
	}
	c := r.open(1).c
	if c.foldsWith(len(key) + len(value)) { // the groups look at its rows
		r.endPieces()
		c.fold()
	}
	return c.addRow(key, value)
}

// open returns the open block of a level, the root at first.
func (r *blockBuilder) open(level int) *openBlock {
	for len(r.levels) < level {
		r.levels = append(r.levels, openBlock{c: newCollector(r.ctx, r.t)})
	}
	return &r.levels[level-1]
}

// close ends the blocks of the levels up to one, and begins others at a border.
func (r *blockBuilder) close(upto int, border []byte) error {
	r.endPieces()
	for level := 1; level <= upto; level++ {
		o := r.open(level)
		states := o.c.finish()
		r.key = appendBlockKey(r.key[:0], r.tree, level, o.border)
		r.val = appendBlock(r.val[:0], o.c.rows, states)
		if err := r.set(r.key, r.val); err != nil {
			return err
		}
		r.made.rows, r.made.states = o.c.rows, states
		r.open(level + 1).c.addBlock(&r.made)
		o = r.open(level)
		o.c.reset()
		o.border = append(o.border[:0], border...)
	}
	return nil
}
