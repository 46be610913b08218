package search

import (
	"math"
	"slices"

	"divan/shard/search/analysis"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
)

// node is a query whose words were analysed and weighed.
type node interface {
	// open returns what matches in the chunk at hand.
	open(s *scan) (matcher, error)
}

// compiler makes a node of a query.
type compiler struct {
	scan   *scan
	def    *Definition
	locale string // of the numbers in a query of _nouveau
}

// compile analyses a query. Nil without an error: nothing is left of it.
func (c *compiler) compile(q syntax.Query, boost float64) (node, error) {
	switch q := q.(type) {
	case syntax.All:
		return &allNode{boost}, nil
	case syntax.Boosted:
		return c.compile(q.Query, boost*float64(q.Factor))
	case *syntax.Boolean:
		return c.boolean(q, boost)
	case syntax.Term:
		if n, err := c.number(q.Field, q.Text, boost); n != nil || err != nil {
			return n, err
		}
		return c.words(q, boost)
	case syntax.Phrase:
		if n, err := c.number(q.Field, q.Text, boost); n != nil || err != nil {
			return n, err
		}
		return c.phrase(q, boost)
	case syntax.Number:
		return &numbersNode{exactly(q.Value), q.Field, boost}, nil
	case syntax.NumberRange:
		return &numbersNode{NumberRange{"", q.Lower, q.Upper, q.IncludesLower, q.IncludesUpper}, q.Field, boost}, nil
	case syntax.Range:
		return c.bounds(q, boost)
	case syntax.Fuzzy:
		return c.fuzzy(q, boost)
	}
	n, err := c.pattern(q, boost)
	if n == nil || err != nil {
		return nil, err
	}
	return c.terms(n)
}

// pattern compiles what stands for many terms; nil: it is something else.
func (c *compiler) pattern(q syntax.Query, boost float64) (n *termsNode, err error) {
	switch q := q.(type) {
	case syntax.Prefix:
		text := c.def.Analyzers.Of(q.Field).Normalize(q.Text)
		n = &termsNode{field: q.Field, from: text, accept: prefixed(text), boost: boost}
	case syntax.Wildcard:
		p := c.def.Analyzers.Of(q.Field).Normalize(q.Pattern)
		n = &termsNode{field: q.Field, from: literalPrefix(p), accept: wildcard(p), boost: boost}
	case syntax.Regexp:
		n = &termsNode{field: q.Field, boost: boost}
		n.accept, n.from, err = c.matching(c.def.Analyzers.Of(q.Field).Normalize(q.Pattern))
	case syntax.Range:
		a := c.def.Analyzers.Of(q.Field)
		q.Lower.Text, q.Upper.Text = a.Normalize(q.Lower.Text), a.Normalize(q.Upper.Text)
		n = &termsNode{field: q.Field, from: q.Lower.Text, accept: between(q.Lower, q.Upper), boost: boost}
	}
	return n, err
}

// number compiles a word of a field of numbers of _nouveau; nil: it is another field.
func (c *compiler) number(field, text string, boost float64) (node, error) {
	if t, err := c.scan.fieldType(field); t != postings.DoubleType || err != nil {
		return nil, err
	}
	v, err := syntax.Decimal(text, c.locale)
	if err != nil {
		return nil, err
	}
	return &numbersNode{exactly(v), field, boost}, nil
}

// bounds compiles a range: over numbers where the field has those, in _nouveau.
func (c *compiler) bounds(q syntax.Range, boost float64) (node, error) {
	t, err := c.scan.fieldType(q.Field)
	if err != nil {
		return nil, err
	}
	if t != postings.DoubleType {
		of, err := c.pattern(q, boost)
		if err != nil {
			return nil, err
		}
		return c.terms(of)
	}
	n := &numbersNode{NumberRange{"", math.Inf(-1), math.Inf(1), true, true}, q.Field, boost}
	if !q.Lower.Open {
		n.IncludesLower = q.Lower.Inclusive
		if n.Lower, err = syntax.Decimal(q.Lower.Text, c.locale); err != nil {
			return nil, err
		}
	}
	if !q.Upper.Open {
		n.IncludesUpper = q.Upper.Inclusive
		if n.Upper, err = syntax.Decimal(q.Upper.Text, c.locale); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// words compiles a word: any of its tokens.
func (c *compiler) words(q syntax.Term, boost float64) (node, error) {
	tokens := c.tokens(q.Field, q.Text)
	var some booleanNode
	for _, t := range tokens {
		n, err := c.term(q.Field, t.term, boost)
		if err != nil {
			return nil, err
		}
		some.should = append(some.should, n)
	}
	switch len(tokens) {
	case 0:
		return nil, nil //nolint:nilnil // nothing is left
	case 1:
		return some.should[0], nil
	}
	if some.minimum = 1; c.def.Dialect == syntax.Search {
		some.clauses = len(tokens)
	}
	return &some, nil
}

// term weighs a term.
func (c *compiler) term(field string, term []byte, boost float64) (node, error) {
	if c.byID(field) {
		return c.named(field, string(term), boost)
	}
	if err := c.scan.space.Take(nodeBytes); err != nil {
		return nil, err
	}
	w, err := c.scan.word(field, term)
	if err != nil {
		return nil, err
	}
	worth, err := c.weigh(field, boost, w)
	return &termNode{w, worth}, err
}

// boolean compiles clauses.
func (c *compiler) boolean(q *syntax.Boolean, boost float64) (node, error) {
	clauses, left := make([]node, len(q.Clauses)), 0
	for i := range q.Clauses {
		var err error
		if clauses[i], err = c.compile(q.Clauses[i].Query, boost); err != nil {
			return nil, err
		}
		if clauses[i] != nil {
			left++
		}
	}
	if left == 0 {
		return nil, nil //nolint:nilnil // nothing is left
	}
	out := &booleanNode{minimum: q.Minimum}
	for i, occur := range c.occurs(q, clauses) {
		switch {
		case clauses[i] == nil:
		case occur == syntax.Must:
			out.must = append(out.must, clauses[i])
		case occur == syntax.MustNot:
			out.not = append(out.not, clauses[i])
		default:
			out.should = append(out.should, clauses[i])
		}
	}
	if c.def.Dialect == syntax.Search {
		out.clauses = len(out.must) + len(out.should)
	}
	if len(out.must) == 0 {
		out.minimum = max(1, out.minimum)
	}
	return out, nil
}

// occurs is Boolean.Occurs for the clauses of which something is left.
func (c *compiler) occurs(b *syntax.Boolean, clauses []node) []syntax.Occur {
	return b.Occurs(c.def.Dialect, func(i int) bool { return clauses[i] == nil })
}

// token is a word of a query.
type token struct {
	term     []byte
	position int
}

// tokens analyses a text of a query as the texts of a field were.
func (c *compiler) tokens(field, text string) (out []token) {
	var s analysis.Stream
	s.Reset(c.def.Analyzers.Of(field), text)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		out = append(out, token{slices.Clone(t.Term), t.Position})
	}
	return out
}
