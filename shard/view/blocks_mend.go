package view

import (
	"bytes"
	"errors"

	"divan/storage"
)

// blockEdit mends the blocks of a tree in the batch that changes its rows.
type blockEdit struct {
	b    *storage.IndexBatch
	tree int
	c    *collector
	val  []byte
	// touched are the positions, in order, whose blocks at the level being
	// mended have to be made anew; above collects those of the next level.
	touched, above [][]byte
}

// mend takes the changed rows of the tree, sorted; they are in the batch.
func (e *blockEdit) mend(t *treeState, changes []change) error {
	height := t.height
	levels := make([]int, len(changes))
	for i := range changes {
		levels[i] = levelOf(changes[i].key)
		if changes[i].present {
			height = max(height, levels[i])
		}
	}
	e.borders(changes, levels)
	e.touched = e.touched[:0]
	for i := range changes {
		e.touched = append(e.touched, changes[i].key)
	}
	for level := 1; level <= height+1; level++ {
		if level > t.height+1 { // the root of a new level
			e.touched = append([][]byte{{}}, e.touched...)
		}
		if err := e.level(level); err != nil {
			return err
		}
		e.touched, e.above = e.above, e.touched[:0]
	}
	t.height = height
	return nil
}

// borders removes the entries of blocks whose border went and makes empty ones
// for borders that came.
func (e *blockEdit) borders(changes []change, levels []int) {
	for i := range changes {
		for level := 1; level <= levels[i]; level++ {
			e.val = appendBlockKey(e.val[:0], e.tree, level, changes[i].key)
			if changes[i].present {
				e.b.Set(e.val, appendBlock(nil, 0, e.c.states[:0]))
			} else {
				e.b.Delete(e.val)
			}
		}
	}
}

// level makes the blocks of one level anew that contain what was touched. A
// position that is a border touches the block before it as well, which may have
// reached to where the border came.
func (e *blockEdit) level(level int) (err error) {
	prefix := appendBlockKey(nil, e.tree, level, nil)
	blocks, err := e.b.Iterate(prefix, keyEnd(prefix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blocks.Close()) }()
	from := appendTree(nil, spaceRows, e.tree)
	if level > 1 {
		from = appendBlockKey(nil, e.tree, level-1, nil)
	}
	below, err := e.b.Iterate(from, keyEnd(from))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, below.Close()) }()
	m := levelMender{e: e, level: level, blocks: blocks, below: below, prefix: prefix, from: from}
	for _, key := range e.touched {
		if err := m.touch(key); err != nil {
			return err
		}
	}
	return errors.Join(blocks.Err(), below.Err())
}

// levelMender is one level being mended.
type levelMender struct {
	e             *blockEdit
	level         int
	blocks, below *storage.IndexIterator
	prefix, from  []byte
	border, end   []byte // of the block that was made last; end nil: there is none after it
	made          bool   // there is one
	key           []byte
}

// touch makes the block anew that contains a position, and the one before when
// the position is its border.
func (m *levelMender) touch(key []byte) error {
	if m.made && bytes.Compare(key, m.border) > 0 && (m.end == nil || bytes.Compare(key, m.end) < 0) {
		return nil
	}
	m.key = append(append(m.key[:0], m.prefix...), key...)
	if len(key) > 0 && m.blocks.SeekGE(m.key) && bytes.Equal(m.blocks.Key(), m.key) {
		if err := m.make(m.before(m.key)); err != nil {
			return err
		}
		return m.make(bytes.Clone(key))
	}
	return m.make(m.before(m.key))
}

// before returns the border of the last block that begins before a key of this
// level, the root for none.
func (m *levelMender) before(key []byte) []byte {
	if m.blocks.SeekLT(key) {
		return bytes.Clone(m.blocks.Key()[blockPrefix:])
	}
	return []byte{}
}

// make makes the block that begins at a border anew.
func (m *levelMender) make(border []byte) error {
	if m.made && bytes.Equal(border, m.border) {
		return nil
	}
	key := append(append([]byte{}, m.prefix...), border...)
	m.border, m.end, m.made = border, nil, true
	ok := m.blocks.SeekGE(key)
	if ok && bytes.Equal(m.blocks.Key(), key) {
		ok = m.blocks.NextRewritten()
	}
	if ok {
		m.end = bytes.Clone(m.blocks.Key()[blockPrefix:])
	}
	c := m.e.c
	c.reset()
	if err := m.collect(c); err != nil {
		return err
	}
	m.e.val = appendBlock(m.e.val[:0], c.rows, c.finish())
	m.e.b.Rewrite(key, m.e.val)
	m.e.above = append(m.e.above, border)
	return nil
}

// collect adds what is in the block.
func (m *levelMender) collect(c *collector) error {
	var b block
	lo := append(append([]byte{}, m.from...), m.border...)
	for ok := m.below.SeekGE(lo); ok; ok = m.below.NextRewritten() {
		key := m.below.Key()[len(m.from):]
		if m.end != nil && bytes.Compare(key, m.end) >= 0 {
			break
		}
		v, err := m.below.Value()
		if err == nil && m.level == 1 {
			err = c.addRow(key, v)
		} else if err == nil {
			if err = b.decode(v, len(c.t.reducers)); err == nil {
				c.addBlock(&b)
			}
		}
		if err != nil {
			return err
		}
	}
	return m.below.Err()
}
