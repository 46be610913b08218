package postings

import (
	"cmp"
	"encoding/binary"
	"strings"

	"divan/storage"
)

// gathered are the lists of documents of which the rest was written. All that is gathered
// is of one chunk.
type gathered struct {
	terms []invertedTerm
	runs  []byte
	base  Number // of the first document
}

// Flush adds to a batch the lists of all documents that were applied since it was called
// last. What a term has in several of them becomes one operand, with joined runs.
func (w *Writer) Flush(b *storage.IndexBatch) error {
	m := merger{w.gathered, make([]int, len(w.gathered)), make([]int, len(w.gathered)), nil}
	for i := range m.of {
		if len(m.of[i].terms) > 0 {
			m.heap = append(m.heap, i)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
	prefix := 0
	for len(m.heap) > 0 {
		if prefix == 0 {
			w.key = binary.BigEndian.AppendUint32(append(w.key[:0], spaceList), m.of[0].base.Chunk())
			prefix = len(w.key)
		}
		term, parts := m.term(m.heap[0]), 0
		w.key, w.buf = append(w.key[:prefix], term...), w.buf[:0]
		for ; len(m.heap) > 0 && m.term(m.heap[0]) == term; parts++ {
			var ok bool
			if w.buf, ok = m.take(w.buf); !ok {
				return errDamaged()
			}
		}
		if parts > 1 {
			b.Merge(w.key, Join(w.key, w.buf))
		} else {
			b.Merge(w.key, w.buf)
		}
	}
	clear(w.gathered)
	w.gathered, w.length = w.gathered[:0], b.Len()
	return nil
}

// merger goes through the terms of several Inverted in order: a heap, of those that are not
// at their end, with the least term first, and the first documents among equal ones.
type merger struct {
	of   []gathered
	at   []int // in terms
	from []int // in runs
	heap []int
}

func (m *merger) term(i int) string { return m.of[i].terms[m.at[i]].key }

// take appends the runs of the first term, and goes on.
func (m *merger) take(dst []byte) (out []byte, ok bool) {
	i := m.heap[0]
	g, end := &m.of[i], m.of[i].terms[m.at[i]].end
	for rest := g.runs[m.from[i]:end]; len(rest) > 0; {
		var r run
		if r, rest, ok = cutRun(rest); !ok {
			return dst, false
		}
		dst = r.append(dst, g.base.Offset())
	}
	m.from[i] = end
	if m.at[i]++; m.at[i] == len(g.terms) {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap = m.heap[:last]
	}
	m.down(0)
	return dst, true
}

// down moves what is at a place of the heap to where it belongs.
func (m *merger) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(m.heap) {
			return
		}
		if child+1 < len(m.heap) && m.less(child+1, child) {
			child++
		}
		if !m.less(child, at) {
			return
		}
		m.heap[at], m.heap[child] = m.heap[child], m.heap[at]
		at = child
	}
}

func (m *merger) less(a, b int) bool {
	x, y := m.heap[a], m.heap[b]
	return cmp.Or(strings.Compare(m.term(x), m.term(y)), cmp.Compare(x, y)) < 0
}
