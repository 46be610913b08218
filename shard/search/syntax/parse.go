package syntax

import (
	"strconv"
	"unicode/utf8"

	"divan/storage/fault"
)

// What a text may have at most.
const (
	maxBytes   = 100_000
	maxClauses = 1024 // of one level
	maxAll     = 4096 // clauses of all levels
	maxDepth   = 500  // of groups
)

// Parse reads the text of a query. An error is a *fault.Error of kind BadRequest that
// names the place, where there is one.
func Parse(text string, d Dialect) (Query, error) {
	if len(text) > maxBytes {
		return nil, fault.New(fault.BadRequest, "Cannot parse the query: it is longer than "+strconv.Itoa(maxBytes)+" bytes")
	}
	p := parser{lexer: lexer{dialect: d, text: text}}
	p.advance()
	q := p.query(DefaultField, 0)
	if p.wrong == nil && (p.token.kind != endOfText || p.token.bad) {
		p.unexpected()
	}
	if p.wrong != nil {
		return nil, p.wrong
	}
	return q, nil
}

// parser is one step ahead: token has not been consumed. After the first error it sees
// only the end of the text, and what it returns means nothing.
type parser struct {
	lexer
	token token
	ahead *token // the one after token, when it was asked for
	wrong *fault.Error
	all   int // clauses, of all levels
}

func (p *parser) advance() {
	if p.ahead != nil {
		p.token, p.ahead = *p.ahead, nil
		return
	}
	p.token = p.next()
}

// peek returns the kind of the token after the present one.
func (p *parser) peek() kind {
	if p.ahead == nil {
		t := p.next()
		p.ahead = &t
	}
	if p.ahead.bad {
		return endOfText
	}
	return p.ahead.kind
}

// is reports whether the present token is of that kind.
func (p *parser) is(k kind) bool { return p.token.kind == k && !p.token.bad }

// take consumes a token of that kind and reports whether there was one.
func (p *parser) take(k kind) bool {
	if !p.is(k) || k == endOfText {
		return false
	}
	p.advance()
	return true
}

// expect consumes a token of that kind, or it is an error.
func (p *parser) expect(k kind) {
	if !p.take(k) {
		p.unexpected()
	}
}

// fail notes the first error, in the words of the dialect.
func (p *parser) fail(detail string) {
	if p.dialect == Nouveau {
		p.refuse("Syntax Error, cannot parse " + p.text + ": " + detail)
		return
	}
	p.refuse("Cannot parse '" + p.text + "': " + detail)
}

// refuse notes the first error, whose reason is the text.
func (p *parser) refuse(reason string) {
	if p.wrong == nil {
		p.wrong = fault.New(fault.BadRequest, reason)
	}
	p.token, p.ahead = token{at: len(p.text)}, nil
	p.at, p.state = len(p.text), clauses
}

func (p *parser) unexpected() { p.fail(p.lexer.unexpected(p.token)) }

// checked passes on what unescape and its like return.
func (p *parser) checked(text, wrong string) string {
	if wrong != "" {
		p.fail(wrong)
	}
	return text
}

// query reads clauses to the end of the text or of the group.
func (p *parser) query(field string, depth int) Query {
	b := &Boolean{Clauses: []Clause{p.clause(field, depth)}}
	for p.wrong == nil && !p.is(endOfText) && !p.is(closeGroup) {
		and := p.take(andToken)
		if !and {
			p.take(orToken)
		}
		c := p.clause(field, depth)
		c.And = and
		if b.Clauses = append(b.Clauses, c); len(b.Clauses) > maxClauses {
			p.fail("too many boolean clauses")
		}
	}
	if len(b.Clauses) == 1 && b.Clauses[0].Modifier == Plain {
		return b.Clauses[0].Query
	}
	return b
}

func (p *parser) clause(field string, depth int) Clause {
	c := Clause{}
	if p.all++; p.all > maxAll {
		p.fail("too many boolean clauses")
	}
	switch {
	case p.take(plusToken):
		c.Modifier = Plus
	case p.take(minusToken), p.take(notToken):
		c.Modifier = Negated
	}
	if p.is(wordToken) || p.is(starToken) {
		if next := p.peek(); next == colonToken {
			field = p.field()
			p.advance()
		} else if next == compareToken {
			field = p.field()
			c.Query = p.comparison(field, depth)
			return c
		}
	}
	c.Query = p.operand(field, depth)
	return c
}

// field consumes the name of a field.
func (p *parser) field() string {
	name := p.checked(unescape(p.token.text))
	p.advance()
	return name
}

// operand reads what a field or a modifier stands before.
func (p *parser) operand(field string, depth int) Query {
	if p.take(openGroup) {
		return p.group(field, depth+1)
	}
	return p.leaf(field)
}

func (p *parser) group(field string, depth int) Query {
	if depth > maxDepth {
		p.fail("groups are nested more than " + strconv.Itoa(maxDepth) + " deep")
		return All{}
	}
	q := p.query(field, depth)
	p.expect(closeGroup)
	boost, boosted := p.boost()
	if p.take(atToken) {
		minimum := slop(p.token.text)
		p.expect(numberToken)
		q = atLeast(q, minimum)
	}
	if boosted {
		q = p.weigh(q, boost)
	}
	return q
}

// atLeast says how many clauses of a group have to match.
func atLeast(q Query, minimum int) Query {
	if minimum == 0 {
		return q
	}
	if b, ok := q.(*Boolean); ok && b.Minimum == 0 {
		b.Minimum = minimum
		return b
	}
	return &Boolean{Clauses: []Clause{{Query: q}}, Minimum: minimum}
}

// boost reads ^ and a number.
func (p *parser) boost() (by float32, ok bool) {
	if !p.take(caretToken) {
		return 0, false
	}
	by = factor(p.token.text)
	p.expect(numberToken)
	return by, true
}

// weigh gives q a boost; it may have one from within a group.
func (p *parser) weigh(q Query, by float32) Query {
	if b, ok := q.(Boosted); ok {
		q = b.Query
		if p.dialect == Nouveau {
			by = factorOf(float64(by) * float64(b.Factor))
		}
	}
	return Boosted{q, by}
}

// comparison reads an operator of Nouveau and what it compares a field with.
func (p *parser) comparison(field string, depth int) Query {
	operator := p.token.text
	if operator == "" { // the name of the field was refused
		return All{}
	}
	p.advance()
	if operator == "=" {
		return p.operand(field, depth)
	}
	text := ""
	switch t := p.token; {
	case p.take(quotedToken):
		text = p.checked(unescape(t.text[1 : len(t.text)-1]))
	case p.take(wordToken), p.take(numberToken):
		text = p.checked(unescape(t.text))
	default:
		p.unexpected()
	}
	limit := Bound{Text: text, Inclusive: len(operator) == 2}
	if operator[0] == '<' {
		return Range{field, Bound{Open: true}, limit}
	}
	return Range{field, limit, Bound{Open: true}}
}

// leaf reads a clause that is no group, with its boost.
func (p *parser) leaf(field string) Query {
	var q Query
	switch t := p.token; {
	case t.bad:
		p.unexpected()
		return All{}
	case p.take(quotedToken):
		q = p.phrase(field, t.text[1:len(t.text)-1])
	case p.take(openRange):
		q = p.ranged(field, t.text == "[")
	case p.dialect == Nouveau && p.take(regexpToken):
		q = p.word(field, t)
	case p.take(functionToken):
		p.fail("interval functions are not supported " + p.place(t.at))
	case p.take(wordToken), p.take(prefixToken), p.take(wildcardToken), p.take(starToken),
		p.take(operatorToken), p.take(numberToken), p.take(regexpToken):
		return p.bare(field, t)
	default:
		p.unexpected()
	}
	if by, ok := p.boost(); ok {
		q = p.weigh(q, by)
	}
	return q
}

// fuzziness reads ~ with its number, which may be missing.
func (p *parser) fuzziness() (number string, ok bool) {
	t := p.token
	if !p.take(fuzzyToken) {
		return "", false
	}
	number = t.text[1:]
	if p.dialect == Nouveau {
		if number = p.token.text; !p.take(numberToken) {
			number = ""
		}
	}
	return number, true
}

func (p *parser) phrase(field, quoted string) Query {
	q := Phrase{Field: field, Text: p.checked(unescape(quoted))}
	if number, ok := p.fuzziness(); ok {
		q.Slop = slop(number)
	}
	return q
}

// bare reads what may follow a word, and makes of it what it is.
func (p *parser) bare(field string, t token) Query {
	number, fuzzy := p.fuzziness()
	by, boosted := p.boost()
	if boosted && !fuzzy && p.dialect == Search {
		number, fuzzy = p.fuzziness()
	}
	q := p.word(field, t)
	if fuzzy {
		q = p.fuzzy(field, t, q, number)
	}
	if boosted {
		q = p.weigh(q, by)
	}
	return q
}

// fuzzy makes a word fuzzy; what has wildcards stays as it is.
func (p *parser) fuzzy(field string, t token, q Query, number string) Query {
	switch q.(type) {
	case Term, Number:
	default:
		return q
	}
	text := p.checked(unescape(t.text))
	n, ok := edits(number, utf8.RuneCountInString(text))
	if !ok {
		if p.dialect == Nouveau {
			p.refuse("Fractional edit distances are not allowed.")
		} else {
			p.fail("Fractional edit distances are not allowed!")
		}
	}
	return Fuzzy{field, text, n}
}

// word makes of a word what it is without a fuzziness.
func (p *parser) word(field string, t token) Query {
	k, text := t.kind, t.text
	switch k {
	case operatorToken:
		return Term{field, text[:1]}
	case regexpToken:
		return Regexp{field, text[1 : len(text)-1]}
	case wordToken:
		if p.dialect == Nouveau {
			k = wildcards(text)
		}
	default:
	}
	if field == "*" && text == "*" {
		return All{}
	}
	switch k {
	case prefixToken:
		text = p.checked(unescape(text[:len(text)-1]))
		if p.dialect == Search && text != "" && text[0] == '*' {
			p.fail("'*' not allowed as first character in PrefixQuery")
		}
		return Prefix{field, text}
	case starToken, wildcardToken:
		if text[0] == '*' || text[0] == '?' {
			p.leading(field, text)
		}
		return Wildcard{field, p.checked(pattern(text))}
	default:
	}
	text = p.checked(unescape(text))
	if p.dialect == Search {
		if v, ok := number(text); ok {
			return Number{field, v}
		}
	}
	return Term{field, text}
}

// leading refuses a wildcard at the beginning of a word.
func (p *parser) leading(field, word string) {
	if p.dialect == Nouveau {
		p.refuse("Leading wildcard is not allowed: " + field + ":" + word)
		return
	}
	p.fail("'*' or '?' not allowed as first character in WildcardQuery")
}

// wildcards says which of wordToken, prefixToken and wildcardToken a word of Nouveau is.
func wildcards(word string) kind {
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '\\':
			i++
		case c == '*' && i > 0 && i == len(word)-1:
			return prefixToken
		case c == '*', c == '?':
			return wildcardToken
		}
	}
	return wordToken
}

// ranged reads a range, whose opening bracket has been consumed.
func (p *parser) ranged(field string, inclusive bool) Query {
	lower := p.limit(inclusive)
	if !p.take(toToken) && p.dialect == Nouveau {
		p.unexpected()
	}
	upper := p.limit(false)
	upper.Inclusive = !upper.Open && p.token.text == "]"
	p.expect(closeRange)
	if p.dialect == Search {
		if q, ok := numbers(field, lower, upper); ok {
			return q
		}
	}
	return Range{field, lower, upper}
}

// limit reads one bound.
func (p *parser) limit(inclusive bool) Bound {
	t, text := p.token, p.token.text
	switch {
	case p.take(quotedBound):
		text = text[1 : len(text)-1]
	case p.take(boundToken), p.dialect == Nouveau && p.take(toToken):
	default:
		p.unexpected()
		return Bound{}
	}
	if text == "*" && (t.kind == boundToken || p.dialect == Nouveau) {
		return Bound{Open: true}
	}
	return Bound{Text: p.checked(unescape(text)), Inclusive: inclusive}
}

// numbers returns the range of numbers that two bounds of Search are, if they both read
// as numbers or are open.
func numbers(field string, lower, upper Bound) (q NumberRange, ok bool) {
	if lower.Open {
		lower = Bound{Text: "-Infinity", Inclusive: true}
	}
	if upper.Open {
		upper = Bound{Text: "Infinity", Inclusive: true}
	}
	q = NumberRange{Field: field, IncludesLower: lower.Inclusive, IncludesUpper: upper.Inclusive}
	q.Lower, ok = number(lower.Text)
	if !ok {
		return q, false
	}
	q.Upper, ok = number(upper.Text)
	return q, ok
}
