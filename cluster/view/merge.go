package view

import (
	"bytes"
	"errors"
	"fmt"

	"divan/cluster/quorum"
	"divan/shard/view/reduce"
)

// merge is the rows of several parts in one order.
type merge struct {
	parts []*part
	order *quorum.Merge[place]
	last  int // the part whose row was handed out last; -1: none
}

func newMerge(parts []*part, desc bool) *merge {
	m := &merge{parts: parts, order: quorum.NewMerge(len(parts), order(desc)), last: -1}
	for i := range parts {
		m.stand(i)
	}
	return m
}

// stand tells the merge which row part i stands at.
func (m *merge) stand(i int) {
	if p := m.parts[i]; p.row() != nil {
		m.order.Set(i, p.place())
	} else {
		m.order.End(i)
	}
}

// best returns the part that holds the next row, nil at the end.
func (m *merge) best() (*part, error) {
	if m.last >= 0 {
		if err := m.parts[m.last].advance(); err != nil {
			return nil, err
		}
		m.stand(m.last)
		m.last = -1
	}
	i, ok := m.order.Best()
	if !ok {
		return nil, nil //nolint:nilnil // the end
	}
	m.last = i
	return m.parts[i], nil
}

func (m *merge) close() {
	for _, p := range m.parts {
		p.Close()
	}
}

// mapped is the rows of a view.
type mapped struct {
	*merge
	docs *documents // nil: rows come without
}

func (m *mapped) close() {
	m.merge.close()
	if m.docs != nil {
		m.docs.held.Reduce(0)
	}
}

func (m *mapped) skip() (ok bool, err error) {
	p, err := m.best()
	return p != nil, err
}

func (m *mapped) next(row *Row) (ok bool, err error) {
	p, err := m.best()
	if p == nil || err != nil {
		return false, err
	}
	r := p.row()
	*row = Row{ID: r.ID, Key: r.Key, Value: r.Value}
	if m.docs != nil {
		row.Doc, err = m.docs.of(p)
	}
	return true, err
}

// reduced is the groups of a view: those of several ranges of the ring that are
// the same group become one.
type reduced struct {
	*merge
	function reduce.Function
	level    int // Query.GroupLevel

	sort, key, value []byte
	state            []byte // of all of them
	buf              []byte // the states of the group, one behind the other
	ends             []int  // where each ends in buf
	states           [][]byte
}

// gather collects the states of the next group.
func (g *reduced) gather() (ok bool, err error) {
	g.buf, g.ends = g.buf[:0], g.ends[:0]
	keys := int32(0)
	for {
		p, err := g.best()
		if p == nil || err != nil {
			return len(g.ends) > 0, err
		}
		r := p.row()
		if len(g.ends) == 0 {
			keys, g.sort, g.key = r.Range, append(g.sort[:0], r.Sort...), append(g.key[:0], r.Key...)
		} else if r.Range != keys || !bytes.Equal(r.Sort, g.sort) {
			g.last = -1 // the row is that of the group behind
			return true, nil
		}
		g.buf = append(g.buf, r.Value...)
		g.ends = append(g.ends, len(g.buf))
	}
}

func (g *reduced) skip() (ok bool, err error) { return g.gather() }

func (g *reduced) next(row *Row) (ok bool, err error) {
	if ok, err = g.gather(); !ok || err != nil {
		return ok, err
	}
	state := g.buf
	if len(g.ends) > 1 {
		g.states = g.states[:0]
		from := 0
		for _, to := range g.ends {
			g.states, from = append(g.states, g.buf[from:to:to]), to
		}
		if g.state, err = g.function.Rereduce(g.state[:0], g.states); err != nil {
			return false, fmt.Errorf("reduce over shards: %w", err)
		}
		state = g.state
	}
	var overflow *reduce.OverflowError
	g.value, err = g.function.Final(g.value[:0], state)
	switch {
	case errors.As(err, &overflow):
		*row = Row{Key: []byte("null"), Overflow: overflow.Reason} // as in CouchDB without the key
		return true, nil
	case err != nil:
		return false, fmt.Errorf("finish a reduction: %w", err)
	}
	*row = Row{Key: g.key, Value: g.value}
	if g.level == 0 {
		row.Key = []byte("null")
	}
	return true, nil
}
