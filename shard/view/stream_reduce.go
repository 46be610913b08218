package view

import (
	"bytes"
	"slices"

	"divan/storage"
)

// grouping is the state of a Stream while it reads groups.
type grouping struct {
	level   int                    // of groups; exactGroups
	count   int                    // entries
	entries *storage.IndexIterator // nil: none are kept
	prefix  []byte                 // of entries
	entry   groupEntry
	group   []byte // that the rows read last belong to
	key     []byte // that it shows
	lo      []byte // scratch
}

// openGroups prepares the reading of groups.
func (s *Stream) openGroups(number int, st *state) (err error) {
	g := &s.groups
	if g.level = s.req.GroupLevel; g.level == 0 {
		return nil
	}
	if g.level == GroupExact {
		g.level = exactGroups
	}
	level, ok := st.trees[number].keptLevel(s.req.GroupLevel)
	if !ok || !st.blocks {
		return nil
	}
	g.count = int(st.trees[number].groups[level])
	g.prefix = appendGroupKey(nil, number, level, nil)
	g.entries, err = s.snap.Iterate(g.prefix, keyEnd(g.prefix))
	return err
}

// group adds the next group of the first range that is left, if there is one.
func (s *Stream) group(b *Batch) error {
	switch {
	case s.req.GroupLevel == 0:
		r := s.spans[0]
		number := s.number
		s.endRange()
		return s.sumGroup(b, number, r, nil, []byte("null"))
	case s.groups.entries != nil:
		return s.entry(b)
	default:
		return s.scan(b)
	}
}

// sumGroup adds what a range holds as a group.
func (s *Stream) sumGroup(b *Batch, number int, r span, group, key []byte) error {
	if err := s.sum.sum(r.lo, r.hi); err != nil || s.sum.rows == 0 {
		return err
	}
	state, err := s.sum.state(nil)
	if err != nil {
		return err
	}
	b.add(number, group, key, state)
	return nil
}

// entry adds the group of the next entry.
func (s *Stream) entry(b *Batch) error {
	g, r := &s.groups, &s.spans[0]
	if !s.moved {
		s.moved, s.some = true, s.findEntry(r)
	}
	var group []byte
	if s.some {
		group = g.entries.Key()[len(g.prefix):]
		if s.req.Desc {
			s.some = !behindGroup(r.lo, group)
		} else {
			s.some = before(group, r.hi)
		}
	}
	if !s.some {
		s.endRange()
		return g.entries.Err()
	}
	v, err := g.entries.Value()
	if err == nil {
		err = g.entry.decode(v, len(s.t.reducers))
	}
	if err != nil {
		return err
	}
	key := g.entry.first
	if s.req.Desc {
		key = g.entry.last
	}
	state := g.entry.states[s.sum.reducer]
	if state != nil && bytes.Compare(group, r.lo) >= 0 && (r.hi == nil || behindGroup(r.hi, group)) {
		b.add(s.number, group[len(s.prefix):], key, state)
	} else if err := s.part(b, *r, group); err != nil {
		return err
	}
	if s.req.Desc {
		s.some = g.entries.Prev()
	} else {
		s.some = g.entries.Next()
	}
	return nil
}

// findEntry moves to the first group in the direction that may have rows in a
// range.
func (s *Stream) findEntry(r *span) bool {
	g := &s.groups
	it, prefix := g.entries, g.prefix
	if s.req.Desc {
		if r.hi == nil {
			return it.Last()
		}
		return it.SeekLT(append(append(g.lo[:0], prefix...), r.hi...))
	}
	g.lo = append(append(g.lo[:0], prefix...), r.lo...)
	if len(r.lo) > len(s.prefix) && it.SeekLT(g.lo) && inGroup(r.lo, it.Key()[len(prefix):]) {
		return true
	}
	return it.SeekGE(g.lo)
}

// part adds what of a group lies in a range.
func (s *Stream) part(b *Batch, r span, group []byte) error {
	g := &s.groups
	g.group = append(append(g.group[:0], group...), beyond)
	own := span{lo: g.group[:len(group):len(group)], hi: g.group}
	if bytes.Compare(r.lo, own.lo) > 0 {
		own.lo = r.lo
	}
	if r.hi != nil && bytes.Compare(r.hi, own.hi) < 0 {
		own.hi = r.hi
	}
	ok, err := s.find(own)
	if err != nil || !ok {
		return err
	}
	value, err := s.sum.rowIt.Value()
	if err != nil {
		return err
	}
	v, err := decodeRowValue(value)
	if err != nil {
		return err
	}
	if g.key, err = shown(g.key[:0], v.key, g.level); err != nil {
		return err
	}
	return s.sumGroup(b, s.number, own, group[len(s.prefix):], g.key)
}

// scanRows is how many rows of a group are read before blocks are used.
const scanRows = 64

// scan adds the next group, whose rows are read one by one. That is cheapest for
// small ones.
func (s *Stream) scan(b *Batch) (err error) {
	g, r := &s.groups, &s.spans[0]
	if !s.moved {
		s.moved = true
		if s.some, err = s.find(*r); err != nil {
			return err
		}
	}
	it := s.sum.rowIt
	if !s.some {
		s.endRange()
		return it.Err()
	}
	s.sum.begin()
	for first := true; s.some; first = false {
		key := it.Key()[treePrefix:]
		if !first && !inGroup(key, g.group) {
			break
		}
		if len(s.sum.list) == scanRows {
			s.moved = false
			err := s.part(b, *r, g.group)
			if s.req.Desc {
				r.hi = bytes.Clone(g.group[:len(g.group)-1])
			} else {
				r.lo = bytes.Clone(g.group)
			}
			return err
		}
		value, err := it.Value()
		if err != nil {
			return err
		}
		if err := s.sum.addRow(key, value); err != nil {
			return err
		}
		if first {
			v, err := decodeRowValue(value)
			if err == nil {
				g.key, err = shown(g.key[:0], v.key, g.level)
			}
			if err != nil {
				return err
			}
			g.group = append(g.group[:0], s.t.groupOf(key[:v.sort], g.level)...)
		}
		if s.req.Desc {
			s.some = it.Prev() && bytes.Compare(it.Key()[treePrefix:], r.lo) >= 0
		} else {
			s.some = it.Next() && before(it.Key()[treePrefix:], r.hi)
		}
	}
	if s.req.Desc {
		slices.Reverse(s.sum.list)
	}
	if err := s.sum.reduceList(); err != nil {
		return err
	}
	b.add(s.number, g.group[len(s.prefix):], g.key, s.sum.states[0])
	return it.Err()
}

// find moves to the first row of a range in the direction.
func (s *Stream) find(r span) (bool, error) {
	if err := s.sum.openRows(); err != nil {
		return false, err
	}
	it, prefix := s.sum.rowIt, s.sum.rowPrefix
	g := &s.groups
	if !s.req.Desc {
		g.lo = append(append(g.lo[:0], prefix...), r.lo...)
		return it.SeekGE(g.lo) && before(it.Key()[treePrefix:], r.hi), it.Err()
	}
	var ok bool
	if r.hi == nil {
		ok = it.Last()
	} else {
		g.lo = append(append(g.lo[:0], prefix...), r.hi...)
		ok = it.SeekLT(g.lo)
	}
	return ok && bytes.Compare(it.Key()[treePrefix:], r.lo) >= 0, it.Err()
}
