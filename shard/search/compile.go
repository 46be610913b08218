package search

import (
	"math"
	"strconv"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/fault"
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
		if n, ok := parseNumber(q.Text); ok && e.req.Dialect == syntax.Nouveau {
			if numeric, err := e.r.Has(postings.Numbers, q.Field); numeric || err != nil {
				return &numbersNode{field: q.Field, lower: n, upper: n, includesLower: true, includesUpper: true, boost: boost}, err
			}
		}
		return e.words(q, boost)
	case syntax.Phrase:
		return e.phrase(q, boost)
	case syntax.Number:
		return &numbersNode{field: q.Field, lower: q.Value, upper: q.Value, includesLower: true, includesUpper: true, boost: boost}, nil
	case syntax.NumberRange:
		return &numbersNode{q.Field, q.Lower, q.Upper, q.IncludesLower, q.IncludesUpper, boost}, nil
	case syntax.Range:
		return e.bounds(q, boost)
	case syntax.Prefix:
		text := e.req.Definition.Analyzer(q.Field).Normalize(q.Text)
		return &termsNode{field: q.Field, from: text, accept: prefixed(text), boost: boost}, nil
	case syntax.Wildcard:
		p := e.req.Definition.Analyzer(q.Field).Normalize(q.Pattern)
		return &termsNode{field: q.Field, from: literalPrefix(p), accept: wildcard(p), boost: boost}, nil
	case syntax.Fuzzy:
		return e.fuzzy(q, boost)
	}
	return nil, fault.New(fault.BadRequest, "Regular expressions are not supported.")
}

// parseNumber reads a bound or a word of Nouveau as a number.
func parseNumber(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n)
}

// bounds compiles a range: over numbers where the field has some, in Nouveau.
func (e *evaluation) bounds(q syntax.Range, boost float64) (node, error) {
	if e.req.Dialect == syntax.Nouveau {
		n := &numbersNode{q.Field, math.Inf(-1), math.Inf(1), true, true, boost}
		ok := true
		if !q.Lower.Open {
			n.lower, ok = parseNumber(q.Lower.Text)
			n.includesLower = q.Lower.Inclusive
		}
		if !q.Upper.Open && ok {
			n.upper, ok = parseNumber(q.Upper.Text)
			n.includesUpper = q.Upper.Inclusive
		}
		if numeric, err := e.r.Has(postings.Numbers, q.Field); err != nil || numeric && ok {
			return n, err
		}
	}
	a := e.req.Definition.Analyzer(q.Field)
	q.Lower.Text, q.Upper.Text = a.Normalize(q.Lower.Text), a.Normalize(q.Upper.Text)
	return &termsNode{field: q.Field, from: q.Lower.Text, accept: between(q.Lower, q.Upper), boost: boost}, nil
}

// words compiles a word: any of its tokens.
func (e *evaluation) words(q syntax.Term, boost float64) (node, error) {
	tokens := e.req.Definition.Analyzer(q.Field).Tokens(nil, q.Text)
	var some booleanNode
	for _, t := range tokens {
		n, err := e.term(q.Field, t.Term, boost)
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
	some.minimum, some.clauses = 1, len(tokens)
	return &some, nil
}

// term weighs a term.
func (e *evaluation) term(field string, term []byte, boost float64) (node, error) {
	idf, err := e.idf(field, term)
	return &termNode{field, term, idf * idf * boost}, err
}

// idf says how much a term tells, by how rare it is.
func (e *evaluation) idf(field string, term []byte) (float64, error) {
	df, err := e.r.Frequency(field, term)
	return max(0, 1+math.Log(float64(max(e.r.Live, 1))/float64(df+1))), err
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
	if out.clauses = len(out.must) + len(out.should); len(out.must) == 0 {
		out.minimum = max(1, out.minimum)
	}
	return out, nil
}
