package view

import (
	"bytes"
	"errors"

	"divan/storage"
)

// mendGroups makes the groups of changed rows anew; the blocks in the batch agree
// with the rows already.
func (e *blockEdit) mendGroups(dense uint64, t *treeState, changes []change) (err error) {
	m := groupMender{e: e, t: t}
	for level := range len(t.groups) {
		if t.kept&(1<<level) == 0 {
			continue
		}
		if err = m.mend(level, changes); err != nil {
			break
		}
		if t.groups[level]*dense > 2*t.rows {
			prefix := appendGroupKey(nil, e.tree, level, nil)
			e.b.DeleteRange(prefix, keyEnd(prefix))
			t.kept &^= 1 << level
			t.groups[level] = 0
		}
	}
	if m.sum != nil {
		err = errors.Join(err, m.sum.Close())
	}
	return err
}

// groupMender makes groups anew in the batch that changes their rows.
type groupMender struct {
	e      *blockEdit
	t      *treeState
	sum    *summer
	g      groupEntry // that is being made
	states [][]byte
}

// mend makes those of one level.
func (m *groupMender) mend(level int, changes []change) (err error) {
	e := m.e
	prefix := appendGroupKey(nil, e.tree, level, nil)
	entries, err := e.b.Iterate(prefix, keyEnd(prefix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, entries.Close()) }()
	if m.sum == nil {
		m.sum = newSummer(e.b, e.c.t, -1, m.t.height)
		if err := m.sum.openRows(); err != nil {
			return err
		}
	}
	var key, group []byte
	for i := range changes {
		if i > 0 && inGroup(changes[i].key, group) {
			continue
		}
		group = append(group[:0], e.c.t.groupOf(changes[i].key[:changes[i].sort], level)...)
		key = append(append(key[:0], prefix...), group...)
		had := entries.SeekGE(key) && bytes.Equal(entries.Key(), key)
		has, err := m.make(key, group, level)
		if err != nil {
			return err
		}
		switch {
		case has && !had:
			m.t.groups[level]++
		case had && !has:
			m.t.groups[level]--
		}
	}
	return entries.Err()
}

// make makes the entry of one group, or removes it.
func (m *groupMender) make(key, group []byte, level int) (has bool, err error) {
	s, c, it := m.sum, m.e.c, m.sum.rowIt
	behind := append(bytes.Clone(group), beyond)
	c.reset()
	m.g = groupEntry{first: m.g.first[:0], last: m.g.last[:0]}
	s.lo = append(append(s.lo[:0], s.rowPrefix...), group...)
	ok := it.SeekGE(s.lo)
	for ; ok && before(it.Key()[treePrefix:], behind) && c.rows < scanRows; ok = it.Next() {
		if err = m.row(); err != nil {
			return false, err
		}
	}
	if err := it.Err(); err != nil {
		return false, err
	}
	if c.rows == 0 {
		m.e.b.Delete(key)
		return false, nil
	}
	if ok && before(it.Key()[treePrefix:], behind) {
		err = m.large(group, behind)
	} else {
		m.g.block = block{c.rows, c.finish()}
	}
	if err == nil {
		m.e.val, err = m.g.append(m.e.val[:0], level)
	}
	m.e.b.Set(key, m.e.val)
	return true, err
}

// row takes in the row at which the iterator stands.
func (m *groupMender) row() error {
	value, err := m.last()
	if err != nil {
		return err
	}
	if m.e.c.rows == 0 {
		m.g.first = append(m.g.first[:0], m.g.last...)
	}
	return m.e.c.addRow(m.sum.rowIt.Key()[treePrefix:], value)
}

// last notes the key of the row at which the iterator stands.
func (m *groupMender) last() (value []byte, err error) {
	if value, err = m.sum.rowIt.Value(); err != nil {
		return nil, err
	}
	v, err := decodeRowValue(value)
	m.g.last = append(m.g.last[:0], v.key...)
	return value, err
}

// large adds up a group of many rows. What fails in a reduce function is not
// stored.
func (m *groupMender) large(group, behind []byte) (err error) {
	s, c := m.sum, m.e.c
	m.states = m.states[:0]
	for i := range c.t.reducers {
		s.reducer, s.function = i, c.functions[i]
		var state []byte
		if c.failed[i] < maxFailures {
			if err = s.sum(group, behind); err == nil {
				state, err = s.state([]byte{})
			}
			if err != nil && !s.failed {
				return err
			}
			if err != nil {
				state = nil
				if c.t.reducers[i].script != nil {
					c.failed[i]++
				}
			}
		}
		m.states = append(m.states, state)
	}
	rows, err := s.count(group, behind)
	if err != nil {
		return err
	}
	m.g.block = block{rows, m.states}
	s.lo = append(append(s.lo[:0], s.rowPrefix...), behind...)
	if !s.rowIt.SeekLT(s.lo) {
		return errors.Join(errRow(), s.rowIt.Err())
	}
	_, err = m.last()
	return err
}

var _ reader = (*storage.IndexBatch)(nil)
