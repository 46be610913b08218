package view

import (
	"bytes"

	"divan/shard/view/reduce"
)

// group adds the next group of the first range that is left, if there is one.
func (s *Stream) group(b *Batch) error {
	if s.req.GroupLevel == 0 {
		r := s.spans[0]
		number := s.number
		s.endRange()
		if err := s.sum.sum(r.lo, r.hi); err != nil || s.sum.rows == 0 {
			return err
		}
		return s.addGroup(b, number, nil, []byte("null"))
	}
	it := s.sum.rowIt
	r := &s.spans[0]
	if !s.find(*r) {
		s.endRange()
		return it.Err()
	}
	value, err := it.Value()
	if err != nil {
		return err
	}
	row, err := s.t.decodeRow(it.Key()[treePrefix:], value)
	if err != nil {
		return err
	}
	part := bytes.Clone(reduce.GroupSort(row.Sort, s.level))
	key, err := reduce.AppendGroupKey(nil, row.Key, s.level)
	if err != nil {
		return err
	}
	g := span{lo: append(append([]byte{}, s.prefix...), part...)}
	g.hi = append(append([]byte{}, g.lo...), beyond)
	own := g
	if bytes.Compare(r.lo, own.lo) > 0 {
		own.lo = r.lo
	}
	if r.hi != nil && bytes.Compare(r.hi, own.hi) < 0 {
		own.hi = r.hi
	}
	if s.req.Desc {
		r.hi = own.lo
	} else {
		r.lo = own.hi
	}
	if err := s.sum.sum(own.lo, own.hi); err != nil {
		return err
	}
	return s.addGroup(b, s.number, part, key)
}

// find moves to the first row of a range in the direction.
func (s *Stream) find(r span) bool {
	it, prefix := s.sum.rowIt, s.sum.rowPrefix
	if !s.req.Desc {
		ok := it.SeekGE(append(append([]byte{}, prefix...), r.lo...))
		return ok && before(it.Key()[treePrefix:], r.hi)
	}
	var ok bool
	if r.hi == nil {
		ok = it.Last()
	} else {
		ok = it.SeekLT(append(append([]byte{}, prefix...), r.hi...))
	}
	return ok && bytes.Compare(it.Key()[treePrefix:], r.lo) >= 0
}

// addGroup adds a reduced row of what was added up.
func (s *Stream) addGroup(b *Batch, number int, sort, key []byte) error {
	state, err := s.sum.state(nil)
	if err != nil {
		return err
	}
	b.add(number, sort, key, state)
	return nil
}
