package search

import (
	"divan/shard/search/postings"
)

// matcher walks over the documents of a chunk that match, by their offsets.
type matcher interface {
	// seek returns the first one that is not below an offset, which does not descend from
	// call to call; postings.End: there is none.
	seek(offset uint32) uint32
	// score is that of the document that seek returned.
	score() float64
}

// termNode matches a term.
type termNode struct {
	word   *word
	weight weight
}

func (n *termNode) open(s *scan) (matcher, error) {
	if err := s.take(matcherBytes); err != nil {
		return nil, err
	}
	m := &termMatcher{n: n, s: s, lengths: s.r.Values(postings.Lengths, n.word.field)}
	return m, s.list(&m.list, n.word)
}

type termMatcher struct {
	n       *termNode
	s       *scan
	list    postings.List
	lengths *postings.Values
	at      uint32
}

func (m *termMatcher) seek(offset uint32) uint32 {
	m.at = m.list.Seek(offset)
	return m.at
}

func (m *termMatcher) score() float64 {
	return m.n.weight.score(float64(m.list.Freq()), m.s.length(m.lengths, m.at))
}

// allNode matches everything.
type allNode struct{ boost float64 }

func (n *allNode) open(s *scan) (matcher, error) { return &allMatcher{n.boost, s.size}, nil }

type allMatcher struct {
	boost float64
	size  uint32
}

func (m *allMatcher) seek(offset uint32) uint32 {
	if offset >= m.size {
		return postings.End
	}
	return offset
}

func (m *allMatcher) score() float64 { return m.boost }

// setMatcher matches what was found before, all with one score.
type setMatcher struct {
	boost float64
	set   *postings.Set
}

// newSet returns an empty set, and takes space for it.
func (s *scan) newSet(boost float64) (*setMatcher, error) {
	return &setMatcher{boost, &postings.Set{}}, s.take(postings.ChunkSize / 8)
}

func (m *setMatcher) seek(offset uint32) uint32 { return m.set.Seek(offset) }
func (m *setMatcher) score() float64            { return m.boost }

// numbersNode matches numbers between two.
type numbersNode struct {
	NumberRange
	field string
	boost float64
}

// exactly is the range of one number.
func exactly(v float64) NumberRange {
	return NumberRange{Lower: v, Upper: v, IncludesLower: true, IncludesUpper: true}
}

func (n *numbersNode) open(s *scan) (matcher, error) {
	m, err := s.newSet(n.boost)
	if err != nil {
		return nil, err
	}
	return m, s.r.EachValue(s.chunk, postings.Numbers, n.field, func(offset uint32, value []byte) {
		if n.holds(postings.DecodeFloat(value)) {
			m.set.Add(offset)
		}
	})
}

// booleanNode matches what all of must, at least minimum of should and none of not match.
type booleanNode struct {
	must, should, not []node
	minimum           int
	clauses           int // of which the share that matches counts for the score; 0: it does not
}

func (n *booleanNode) open(s *scan) (matcher, error) {
	m := &booleanMatcher{n: n}
	for _, part := range [...]struct {
		from []node
		to   *[]clause
	}{{n.must, &m.must}, {n.should, &m.should}, {n.not, &m.not}} {
		*part.to = make([]clause, len(part.from))
		for i, c := range part.from {
			opened, err := c.open(s)
			if err != nil {
				return nil, err
			}
			(*part.to)[i] = clause{m: opened}
		}
	}
	return m, nil
}

// clause is one of a boolean query, and where it stands.
type clause struct {
	m     matcher
	at    uint32
	known bool // at is the last result of m
}

func (c *clause) seek(offset uint32) uint32 {
	if !c.known || c.at < offset {
		c.at, c.known = c.m.seek(offset), true
	}
	return c.at
}

type booleanMatcher struct {
	n                 *booleanNode
	must, should, not []clause
	at                uint32
}

func (m *booleanMatcher) seek(offset uint32) uint32 {
	for m.at = m.candidate(offset); m.at < postings.End && !m.matches(); {
		m.at = m.candidate(m.at + 1)
	}
	return m.at
}

// candidate returns the first offset that all of must match, or else one of should.
func (m *booleanMatcher) candidate(offset uint32) uint32 {
	if len(m.must) == 0 {
		first := uint32(postings.End)
		for i := range m.should {
			first = min(first, m.should[i].seek(offset))
		}
		return first
	}
	for i := 0; i < len(m.must) && offset < postings.End; i++ {
		if at := m.must[i].seek(offset); at > offset {
			offset, i = at, -1
		}
	}
	return offset
}

// matches reports whether the other clauses let a candidate pass.
func (m *booleanMatcher) matches() bool {
	for i := range m.not {
		if m.not[i].seek(m.at) == m.at {
			return false
		}
	}
	found := 0
	for i := range m.should {
		if found >= m.n.minimum {
			return true
		}
		if m.should[i].seek(m.at) == m.at {
			found++
		}
	}
	return found >= m.n.minimum
}

func (m *booleanMatcher) score() (sum float64) {
	found := len(m.must)
	for i := range m.must {
		sum += m.must[i].m.score()
	}
	for i := range m.should {
		if m.should[i].seek(m.at) == m.at {
			sum += m.should[i].m.score()
			found++
		}
	}
	if m.n.clauses > 1 {
		sum *= float64(found) / float64(m.n.clauses)
	}
	return sum
}
