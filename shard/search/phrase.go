package search

import (
	"math/bits"
	"slices"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// phrase compiles tokens at their distances.
func (c *compiler) phrase(q syntax.Phrase, boost float64) (node, error) {
	tokens := c.tokens(q.Field, q.Text)
	switch len(tokens) {
	case 0:
		return nil, nil //nolint:nilnil // nothing is left
	case 1:
		return c.term(q.Field, tokens[0].term, boost)
	}
	if t, err := c.scan.fieldType(q.Field); err != nil {
		return nil, err
	} else if t == postings.StringType {
		return nil, fault.Newf(fault.BadRequest, "field %q was indexed without position data; cannot run a phrase query", q.Field)
	}
	n := &phraseNode{field: q.Field, slop: q.Slop}
	var words []*word
	known := map[string]int{} // words, by term
	for _, t := range tokens {
		w, err := c.scan.word(q.Field, t.term)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
		i, ok := known[string(t.term)]
		if !ok {
			i = len(n.words)
			known[string(t.term)] = i
			n.words = append(n.words, phraseWord{word: w})
		}
		n.words[i].places = append(n.words[i].places, t.position-tokens[0].position)
	}
	var err error
	n.weight, err = c.weigh(q.Field, boost, words...)
	return n, err
}

// phraseNode matches words at places that are right up to slop moves.
type phraseNode struct {
	field  string
	words  []phraseWord // different ones; the first has the place 0
	slop   int
	weight weight
}

// phraseWord is a word and where in the phrase it is, ascending.
type phraseWord struct {
	*word
	places []int
}

func (n *phraseNode) open(s *scan) (matcher, error) {
	if err := s.take(len(n.words) * matcherBytes); err != nil {
		return nil, err
	}
	m := &phraseMatcher{n: n, s: s, lengths: s.r.Values(postings.Lengths, n.field), lists: make([]postings.List, len(n.words)), positions: make([][]uint32, len(n.words))}
	for i := range n.words {
		if err := s.list(&m.lists[i], n.words[i].word); err != nil {
			return nil, err
		}
	}
	return m, nil
}

type phraseMatcher struct {
	n         *phraseNode
	s         *scan
	lists     []postings.List
	lengths   *postings.Values
	positions [][]uint32 // of each word in the document
	starts    []int      // without moves: where the phrase may begin
	begins    []uint64   // with moves: bits of where it may begin, from -before on
	before    int
	work      int // places that were looked at since the last look at the context
	at        uint32
	frequency float64
}

func (m *phraseMatcher) seek(offset uint32) uint32 {
	if m.frequency > 0 && m.at >= offset {
		return m.at
	}
	for m.frequency = 0; ; offset++ {
		for i := 0; i < len(m.lists) && offset < postings.End; i++ {
			if at := m.lists[i].Seek(offset); at > offset {
				offset, i = at, -1
			}
		}
		if m.at = offset; offset >= postings.End {
			return postings.End
		}
		for i := range m.lists {
			had := cap(m.positions[i])
			m.positions[i] = m.lists[i].Positions(m.positions[i][:0])
			if more := cap(m.positions[i]) - had; more > 0 && m.s.err == nil {
				m.s.err = m.s.take(more * 4)
			}
		}
		m.frequency = m.count()
		switch {
		case m.s.err != nil:
			m.frequency, m.at = 0, postings.End
			return postings.End
		case m.frequency > 0:
			return offset
		}
	}
}

// count returns how often the phrase is in the document; one with moves counts less.
func (m *phraseMatcher) count() (sum float64) {
	if m.s.err != nil {
		return 0
	}
	if m.n.slop == 0 {
		return float64(m.exactly())
	}
	if !m.mark() {
		return 0
	}
	for i, word := range m.begins {
		for ; word != 0; word &= word - 1 {
			if moves, ok := m.moves(i<<6 + bits.TrailingZeros64(word) - m.before); ok {
				sum += 1 / float64(1+moves)
			}
			if !m.worked(1) {
				return 0
			}
		}
	}
	return sum
}

// mark marks where the phrase may begin: where some word of it is at its place. That is a bit
// for each position, however often the phrase has the word. It is false when the query ended.
func (m *phraseMatcher) mark() bool {
	m.before = 0
	last := uint32(0)
	for i := range m.n.words {
		places := m.n.words[i].places
		m.before = max(m.before, places[len(places)-1])
		if p := m.positions[i]; len(p) > 0 {
			last = max(last, p[len(p)-1])
		}
	}
	n := (int(last)+m.before)>>6 + 1
	if more := n - cap(m.begins); more > 0 {
		if m.s.err = m.s.take(more * 8); m.s.err != nil {
			return false
		}
		m.begins = make([]uint64, n)
	}
	m.begins = m.begins[:n]
	clear(m.begins)
	for i := range m.n.words {
		for _, place := range m.n.words[i].places {
			for _, p := range m.positions[i] {
				at := int(p) - place + m.before
				m.begins[at>>6] |= 1 << (at & 63)
			}
			if !m.worked(len(m.positions[i])) {
				return false
			}
		}
	}
	return true
}

// worked is called behind some work on one document, which may be long. It is false when
// the query ended.
func (m *phraseMatcher) worked(places int) bool {
	if m.work += places; m.work >= checkEvery {
		m.work = 0
		if err := m.s.turn.check(); err != nil {
			m.s.err = err
		}
	}
	return m.s.err == nil
}

// exactly returns how often the phrase is in the document without moves.
func (m *phraseMatcher) exactly() int {
	if more := len(m.positions[0]) - cap(m.starts); more > 0 {
		if m.s.err = m.s.take(more * 8); m.s.err != nil {
			return 0
		}
		m.starts = make([]int, 0, len(m.positions[0]))
	}
	m.starts = m.starts[:0]
	for _, p := range m.positions[0] {
		m.starts = append(m.starts, int(p))
	}
	for i := range m.n.words {
		for at, place := range m.n.words[i].places {
			if i+at == 0 {
				continue // where it begins
			}
			left, rest := m.starts[:0], m.positions[i]
			for _, start := range m.starts {
				for len(rest) > 0 && int(rest[0]) < start+place {
					rest = rest[1:]
				}
				if len(rest) > 0 && int(rest[0]) == start+place {
					left = append(left, start)
				}
			}
			if m.starts = left; len(left) == 0 || !m.worked(len(left)+len(m.positions[i])) {
				return 0
			}
		}
	}
	return len(m.starts)
}

// moves returns by how much the phrase is stretched that begins at a position; ok is false
// when it is not there. No word is used twice: since the places of a word ascend, the
// first occurrence that is left is the best for each.
func (m *phraseMatcher) moves(start int) (moves int, ok bool) {
	for i := range m.n.words {
		rest := m.positions[i]
		for _, place := range m.n.words[i].places {
			m.work++
			at := 0
			if len(rest) > 0 && int(rest[0]) < start+place {
				at, _ = slices.BinarySearchFunc(rest, start+place, func(p uint32, want int) int { return int(p) - want })
			}
			if at == len(rest) || int(rest[at]) > start+place+m.n.slop {
				return 0, false
			}
			moves = max(moves, int(rest[at])-start-place)
			rest = rest[at+1:]
		}
	}
	return moves, true
}

func (m *phraseMatcher) score() float64 {
	return m.n.weight.score(m.frequency, m.s.length(m.lengths, m.at))
}
