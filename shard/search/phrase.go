package search

import (
	"bytes"
	"slices"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
)

// phrase compiles tokens at their distances.
func (e *evaluation) phrase(q syntax.Phrase, boost float64) (node, error) {
	tokens := e.req.Definition.Analyzer(q.Field).Tokens(nil, q.Text)
	switch len(tokens) {
	case 0:
		return nil, nil //nolint:nilnil // nothing is left
	case 1:
		return e.term(q.Field, tokens[0].Term, boost)
	}
	n := &phraseNode{field: q.Field, slop: q.Slop}
	sum := 0.0
	for _, t := range tokens {
		idf, err := e.idf(q.Field, t.Term)
		if err != nil {
			return nil, err
		}
		sum += idf
		i := slices.IndexFunc(n.words, func(w phraseWord) bool { return bytes.Equal(w.term, t.Term) })
		if i < 0 {
			i = len(n.words)
			n.words = append(n.words, phraseWord{term: t.Term})
		}
		n.words[i].places = append(n.words[i].places, t.Position-tokens[0].Position)
	}
	n.weight = sum * sum * boost
	return n, nil
}

// phraseNode matches words at places that are right up to slop moves.
type phraseNode struct {
	field  string
	words  []phraseWord // different ones; the first has the place 0
	slop   int
	weight float64
}

// phraseWord is a word and where in the phrase it is, ascending.
type phraseWord struct {
	term   []byte
	places []int
}

func (n *phraseNode) open(e *evaluation) (matcher, error) {
	m := &phraseMatcher{n: n, e: e, lists: make([]postings.List, len(n.words)), positions: make([][]uint32, len(n.words))}
	for i := range n.words {
		if err := e.list(&m.lists[i], n.field, n.words[i].term); err != nil {
			return nil, err
		}
	}
	return m, nil
}

type phraseMatcher struct {
	n         *phraseNode
	e         *evaluation
	lists     []postings.List
	positions [][]uint32 // of each word in the document
	starts    []int
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
			m.positions[i] = m.lists[i].Positions(m.positions[i][:0])
		}
		if m.frequency = m.count(); m.frequency > 0 {
			return offset
		}
	}
}

// count returns how often the phrase is in the document; one with moves counts less.
func (m *phraseMatcher) count() (sum float64) {
	m.starts = m.starts[:0]
	for i := range m.n.words {
		for _, place := range m.n.words[i].places {
			for _, p := range m.positions[i] {
				m.starts = append(m.starts, int(p)-place)
			}
			if m.n.slop == 0 { // it begins with the first word
				break
			}
		}
		if m.n.slop == 0 {
			break
		}
	}
	slices.Sort(m.starts)
	for _, start := range slices.Compact(m.starts) {
		if moves, ok := m.moves(start); ok {
			sum += 1 / float64(1+moves)
		}
	}
	return sum
}

// moves returns by how much the phrase is stretched that begins at a position; ok is false
// when it is not there. No word is used twice: since the places of a word ascend, the
// first occurrence that is left is the best for each.
func (m *phraseMatcher) moves(start int) (moves int, ok bool) {
	for i := range m.n.words {
		rest := m.positions[i]
		for _, place := range m.n.words[i].places {
			at, _ := slices.BinarySearchFunc(rest, start+place, func(p uint32, want int) int { return int(p) - want })
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
	return tfIDF(m.frequency, m.n.weight, m.e.length(m.n.field, m.at))
}
