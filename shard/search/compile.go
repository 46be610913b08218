package search

import (
	"math"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
)

// node is a query whose words were analysed and weighed.
type node interface {
	// open returns what matches in the chunk at hand.
	open(e *evaluation) (matcher, error)
}

// compile analyses a query. Nil without an error: nothing is left of it.
func (e *evaluation) compile(q syntax.Query, boost float64) (node, error) {
	switch q := q.(type) {
	case syntax.All:
		return &allNode{boost}, nil
	case syntax.Boosted:
		return e.compile(q.Query, boost*float64(q.Factor))
	case *syntax.Boolean:
		return e.boolean(q, boost)
	case syntax.Term:
		if n, err := e.number(q.Field, q.Text, boost); n != nil || err != nil {
			return n, err
		}
		return e.words(q, boost)
	case syntax.Phrase:
		if n, err := e.number(q.Field, q.Text, boost); n != nil || err != nil {
			return n, err
		}
		return e.phrase(q, boost)
	case syntax.Number:
		return &numbersNode{exactly(q.Value), q.Field, boost}, nil
	case syntax.NumberRange:
		return &numbersNode{NumberRange{"", q.Lower, q.Upper, q.IncludesLower, q.IncludesUpper}, q.Field, boost}, nil
	case syntax.Range:
		return e.bounds(q, boost)
	case syntax.Fuzzy:
		return e.fuzzy(q, boost)
	}
	n, err := e.pattern(q, boost)
	if n == nil || err != nil {
		return nil, err
	}
	return e.terms(n)
}

// pattern compiles what stands for many terms; nil: it is something else.
func (e *evaluation) pattern(q syntax.Query, boost float64) (n *termsNode, err error) {
	switch q := q.(type) {
	case syntax.Prefix:
		text := e.def.Analyzers.Of(q.Field).Normalize(q.Text)
		n = &termsNode{field: q.Field, from: text, accept: prefixed(text), boost: boost}
	case syntax.Wildcard:
		p := e.def.Analyzers.Of(q.Field).Normalize(q.Pattern)
		n = &termsNode{field: q.Field, from: literalPrefix(p), accept: wildcard(p), boost: boost}
	case syntax.Regexp:
		n = &termsNode{field: q.Field, boost: boost}
		n.accept, n.from, err = e.matching(e.def.Analyzers.Of(q.Field).Normalize(q.Pattern))
	case syntax.Range:
		a := e.def.Analyzers.Of(q.Field)
		q.Lower.Text, q.Upper.Text = a.Normalize(q.Lower.Text), a.Normalize(q.Upper.Text)
		n = &termsNode{field: q.Field, from: q.Lower.Text, accept: between(q.Lower, q.Upper), boost: boost}
	}
	return n, err
}

// number compiles a word of a field of numbers of _nouveau; nil: it is another field.
func (e *evaluation) number(field, text string, boost float64) (node, error) {
	if t, err := e.fieldType(field); t != postings.DoubleType || err != nil {
		return nil, err
	}
	v, err := syntax.Decimal(text, e.req.Locale)
	if err != nil {
		return nil, err
	}
	return &numbersNode{exactly(v), field, boost}, nil
}

// bounds compiles a range: over numbers where the field has those, in _nouveau.
func (e *evaluation) bounds(q syntax.Range, boost float64) (node, error) {
	t, err := e.fieldType(q.Field)
	if err != nil {
		return nil, err
	}
	if t != postings.DoubleType {
		of, err := e.pattern(q, boost)
		if err != nil {
			return nil, err
		}
		return e.terms(of)
	}
	n := &numbersNode{NumberRange{"", math.Inf(-1), math.Inf(1), true, true}, q.Field, boost}
	if !q.Lower.Open {
		n.IncludesLower = q.Lower.Inclusive
		if n.Lower, err = syntax.Decimal(q.Lower.Text, e.req.Locale); err != nil {
			return nil, err
		}
	}
	if !q.Upper.Open {
		n.IncludesUpper = q.Upper.Inclusive
		if n.Upper, err = syntax.Decimal(q.Upper.Text, e.req.Locale); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// words compiles a word: any of its tokens.
func (e *evaluation) words(q syntax.Term, boost float64) (node, error) {
	tokens := e.tokens(q.Field, q.Text)
	var some booleanNode
	for _, t := range tokens {
		n, err := e.term(q.Field, t.term, boost)
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
	if some.minimum = 1; e.def.Dialect == syntax.Search {
		some.clauses = len(tokens)
	}
	return &some, nil
}

// term weighs a term.
func (e *evaluation) term(field string, term []byte, boost float64) (node, error) {
	if e.byID(field) {
		return e.named(field, string(term), boost)
	}
	if err := e.room.Take(nodeBytes); err != nil {
		return nil, err
	}
	w, err := e.word(field, term)
	if err != nil {
		return nil, err
	}
	worth, err := e.weigh(field, boost, w)
	return &termNode{w, worth}, err
}

// boolean compiles clauses.
func (e *evaluation) boolean(q *syntax.Boolean, boost float64) (node, error) {
	clauses, left := make([]node, len(q.Clauses)), 0
	for i, c := range q.Clauses {
		var err error
		if clauses[i], err = e.compile(c.Query, boost); err != nil {
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
	for i, occur := range e.occurs(q, clauses) {
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
	if e.def.Dialect == syntax.Search {
		out.clauses = len(out.must) + len(out.should)
	}
	if len(out.must) == 0 {
		out.minimum = max(1, out.minimum)
	}
	return out, nil
}
