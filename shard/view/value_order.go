package view

import (
	"bytes"
	"cmp"
	"slices"

	"divan/storage/collate"
)

// orderValues gives rows that a document has under one key of one tree the order
// of their values, as CouchDB does (golden views/11): numbers, null and booleans,
// objects, arrays, strings, the bytes of strings.
func (m *mapped) orderValues() {
	rows := m.rows[m.first:]
	if len(rows) < 2 {
		return
	}
	m.order = m.order[:0]
	for i := range rows {
		m.order = append(m.order, i)
	}
	byKey := func(a, b int) int {
		x, y := &rows[a], &rows[b]
		return cmp.Or(cmp.Compare(x.tree, y.tree), bytes.Compare(x.sortKey(), y.sortKey()))
	}
	slices.SortStableFunc(m.order, byKey)
	for from, to := 0, 1; from < len(m.order); from, to = to, to+1 {
		for to < len(m.order) && byKey(m.order[from], m.order[to]) == 0 {
			to++
		}
		if to-from > 1 {
			m.orderGroup(rows, m.order[from:to])
		}
	}
}

// orderGroup exchanges the ordinals of rows with the same key.
func (m *mapped) orderGroup(rows []mappedRow, group []int) {
	type valued struct {
		row   int
		value []byte // as it sorts
	}
	ordinals, byValue := make([]uint32, len(group)), make([]valued, len(group))
	for i, row := range group {
		ordinals[i] = rows[row].ordinal
		v, err := decodeRowValue(rows[row].text[rows[row].value:])
		byValue[i].row = row
		if err == nil { // it was encoded a moment ago
			byValue[i].value, _ = collate.AppendRawKey(nil, v.value) // no engine emits what is no JSON
		}
	}
	slices.SortStableFunc(byValue, func(a, b valued) int { return bytes.Compare(a.value, b.value) })
	for i := range byValue {
		r := &rows[byValue[i].row]
		if r.ordinal == ordinals[i] {
			continue
		}
		sort, value := r.sortKey(), r.text[r.value:]
		text := appendRowKey(appendTree(m.scratch[:0], spaceRows, int(r.tree)), sort, m.id, int(ordinals[i]))
		r.ordinal, r.value = ordinals[i], uint32(len(text))
		m.scratch = append(text, value...)
		r.text = m.texts.copy(m.scratch)
	}
}
