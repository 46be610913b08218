package searchtest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"divan/shard/search/syntax"
)

// matcher reports whether a document matches.
type matcher func(d *document) bool

// compiler makes a matcher of a query.
type compiler struct {
	x    *Index
	sure bool
}

// compile returns nil for a query of which analysis leaves nothing.
func (c *compiler) compile(q syntax.Query) matcher {
	switch q := q.(type) {
	case syntax.All:
		return func(*document) bool { return true }
	case syntax.Boosted:
		return c.compile(q.Query)
	case *syntax.Boolean:
		return c.boolean(q)
	case syntax.Number:
		return within(q.Field, syntax.NumberRange{Lower: q.Value, Upper: q.Value, IncludesLower: true, IncludesUpper: true})
	case syntax.NumberRange:
		return within(q.Field, q)
	case syntax.Term:
		return c.words(q.Field, q.Text)
	case syntax.Phrase:
		return c.phrase(q)
	case syntax.Range:
		return c.between(q)
	}
	return c.pattern(q)
}

func (c *compiler) pattern(q syntax.Query) matcher {
	switch q := q.(type) {
	case syntax.Prefix:
		prefix := c.normal(q.Field, q.Text)
		return c.any(q.Field, func(term string) bool { return strings.HasPrefix(term, prefix) })
	case syntax.Wildcard:
		pattern := []rune(c.normal(q.Field, q.Pattern))
		return c.any(q.Field, func(term string) bool { return matchesWildcard([]rune(term), pattern) })
	case syntax.Fuzzy:
		text, near := []rune(c.normal(q.Field, q.Text)), 0
		m := c.any(q.Field, func(term string) bool {
			if Edits([]rune(term), text) > q.Edits {
				return false
			}
			near++
			return true
		})
		c.sure = c.sure && near <= Nearest
		return m
	case syntax.Regexp:
		pattern := c.normal(q.Field, q.Pattern)
		if c.x.o.Regexps != nil {
			pattern = c.x.o.Regexps.Replace(pattern)
		}
		return c.any(q.Field, regexp.MustCompile("^(?:"+pattern+")$").MatchString)
	}
	return func(*document) bool { return false }
}

// normal is a pattern as it is looked for.
func (c *compiler) normal(field, text string) string {
	return c.x.o.Analyzers.Of(field).Normalize(text)
}

// any matches documents of which a term of the field is accepted; each term that there is
// is looked at once.
func (c *compiler) any(field string, accept func(term string) bool) matcher {
	accepted := make([]bool, len(c.x.terms))
	for i, term := range c.x.terms {
		accepted[i] = accept(term)
	}
	return func(d *document) bool {
		return slices.ContainsFunc(d.words[field], func(w word) bool { return accepted[w.term] })
	}
}

// numeric reports whether words of the field are numbers.
func (c *compiler) numeric(field string) bool {
	return c.x.o.Dialect == syntax.Nouveau && slices.Contains(c.x.o.Numeric, field)
}

// bound reads a number, of which tests have plain ones.
func bound(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func within(field string, r syntax.NumberRange) matcher {
	return func(d *document) bool {
		return slices.ContainsFunc(d.values[field], func(n float64) bool {
			return (n > r.Lower || r.IncludesLower && n == r.Lower) && (n < r.Upper || r.IncludesUpper && n == r.Upper)
		})
	}
}

func (c *compiler) between(q syntax.Range) matcher {
	if c.numeric(q.Field) {
		r := syntax.NumberRange{Lower: math.Inf(-1), Upper: math.Inf(1), IncludesLower: true, IncludesUpper: true}
		if !q.Lower.Open {
			r.Lower, r.IncludesLower = bound(q.Lower.Text), q.Lower.Inclusive
		}
		if !q.Upper.Open {
			r.Upper, r.IncludesUpper = bound(q.Upper.Text), q.Upper.Inclusive
		}
		return within(q.Field, r)
	}
	lower, upper := c.normal(q.Field, q.Lower.Text), c.normal(q.Field, q.Upper.Text)
	return c.any(q.Field, func(term string) bool {
		return (q.Lower.Open || term > lower || q.Lower.Inclusive && term == lower) &&
			(q.Upper.Open || term < upper || q.Upper.Inclusive && term == upper)
	})
}

func (c *compiler) words(field, text string) matcher {
	if c.numeric(field) {
		v := bound(text)
		return within(field, syntax.NumberRange{Lower: v, Upper: v, IncludesLower: true, IncludesUpper: true})
	}
	tokens := c.x.tokens(field, text)
	if len(tokens) == 0 {
		return nil
	}
	return c.any(field, func(term string) bool {
		return slices.ContainsFunc(tokens, func(t token) bool { return t.text == term })
	})
}

// boolean matches by the flat list of clauses: AND makes the clause behind it one that
// must match, and the one before it unless that is negated.
func (c *compiler) boolean(q *syntax.Boolean) matcher {
	type clause struct {
		match     matcher
		must, not bool
	}
	var all []clause
	before := -1 // in all, the clause that AND reaches back to
	for _, of := range q.Clauses {
		if of.And && before >= 0 && !all[before].not {
			all[before].must = true
		}
		one := clause{c.compile(of.Query), of.And || of.Modifier == syntax.Plus, of.Modifier == syntax.Negated}
		switch {
		case one.match != nil:
			all, before = append(all, one), len(all)
		case c.x.o.Dialect == syntax.Nouveau:
			before = -1 // the clause that is gone is the one before
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(d *document) bool {
		least, musts := max(1, q.Minimum), 0
		for _, one := range all {
			if one.must && !one.not {
				musts++
			}
		}
		if musts > 0 {
			least = q.Minimum
		}
		found := 0
		for _, one := range all {
			switch match := one.match(d); {
			case one.not && match, one.must && !one.not && !match:
				return false
			case match && !one.must:
				found++
			}
		}
		return found >= least
	}
}

func (c *compiler) phrase(q syntax.Phrase) matcher {
	if c.numeric(q.Field) {
		return c.words(q.Field, q.Text)
	}
	tokens := c.x.tokens(q.Field, q.Text)
	if len(tokens) == 0 {
		return nil
	}
	places := make([]word, len(tokens))
	for i, t := range tokens {
		n, ok := c.x.numbers[t.text]
		if !ok {
			n = -1
		}
		places[i] = word{n, t.position}
	}
	return func(d *document) bool { return matchesPhrase(d.words[q.Field], places, q.Slop, nil) }
}

// matchesPhrase tries all occurrences of each word of a phrase that are not chosen for the
// words before it. The moves are by how much the farthest two words are apart from where
// they should be.
func matchesPhrase(in, phrase []word, slop int, chosen []int) bool {
	at := len(chosen)
	if at == len(phrase) {
		least, most := math.MaxInt, math.MinInt
		for i, position := range chosen {
			shift := position - phrase[i].position
			least, most = min(least, shift), max(most, shift)
		}
		return most-least <= slop
	}
	for _, w := range in {
		if w.term == phrase[at].term && !slices.Contains(chosen, w.position) && matchesPhrase(in, phrase, slop, append(chosen, w.position)) {
			return true
		}
	}
	return false
}

func matchesWildcard(term, pattern []rune) bool {
	switch {
	case len(pattern) == 0:
		return len(term) == 0
	case pattern[0] == '*':
		return matchesWildcard(term, pattern[1:]) || len(term) > 0 && matchesWildcard(term[1:], pattern)
	case len(term) == 0:
		return false
	case pattern[0] == '\\':
		return term[0] == pattern[1] && matchesWildcard(term[1:], pattern[2:])
	}
	return (pattern[0] == '?' || pattern[0] == term[0]) && matchesWildcard(term[1:], pattern[1:])
}

// Edits is how many insertions, deletions, replacements and swaps of neighbours make one
// word of the other.
func Edits(a, b []rune) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0 || j == 0:
				table[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = table[i-1][j-1] + 1
			}
			table[i][j] = min(table[i][j], table[i-1][j]+1, table[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				table[i][j] = min(table[i][j], table[i-2][j-2]+1)
			}
		}
	}
	return table[len(a)][len(b)]
}
