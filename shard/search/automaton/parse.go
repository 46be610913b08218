package automaton

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"divan/storage/fault"
)

// What a pattern may have at most.
const (
	maxPattern = 10_000 // bytes
	maxDepth   = 500    // of groups and complements
	maxRepeat  = 10_000
)

// span is the characters between two, inclusively.
type span struct{ from, to rune }

// parser reads a pattern, and makes nodes of it. Of characters it knows no classes yet:
// those are made of all spans at the end.
type parser struct {
	pattern string
	classes bool // \d \s \w and others are classes of characters
	at      int
	depth   int
	wrong   *fault.Error
}

// syntax is a node of a pattern before its nodes are made.
type syntax struct {
	kind     kind
	spans    []span // of characters
	parts    []*syntax
	min, max int // of repeated; max -1: any number
}

// parse reads a pattern.
func parse(pattern string, classes bool) (*syntax, error) {
	p := &parser{pattern: pattern, classes: classes}
	if len(pattern) > maxPattern {
		p.fail("it is longer than " + strconv.Itoa(maxPattern) + " bytes")
		return nil, p.wrong
	}
	if pattern == "" {
		return &syntax{kind: emptyString}, nil
	}
	out := p.union()
	if p.wrong == nil && p.at < len(p.pattern) {
		p.fail("end of string expected at position " + strconv.Itoa(p.at))
	}
	if p.wrong != nil {
		return nil, p.wrong
	}
	return out, nil
}

func (p *parser) fail(detail string) {
	if p.wrong == nil {
		p.wrong = fault.New(fault.BadRequest, "Cannot parse the regular expression /"+p.pattern+"/: "+detail)
	}
	p.at = len(p.pattern)
}

func (p *parser) more() bool { return p.at < len(p.pattern) }

// peek reports whether one of some bytes comes next.
func (p *parser) peek(some string) bool {
	return p.more() && strings.IndexByte(some, p.pattern[p.at]) >= 0
}

func (p *parser) take(c byte) bool {
	if p.more() && p.pattern[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.pattern[p.at:])
	p.at += n
	return r
}

// union reads alternatives.
func (p *parser) union() *syntax {
	out := &syntax{kind: union, parts: []*syntax{p.intersection()}}
	for p.take('|') {
		out.parts = append(out.parts, p.intersection())
	}
	return only(out)
}

func (p *parser) intersection() *syntax {
	out := &syntax{kind: intersection, parts: []*syntax{p.concatenation()}}
	for p.take('&') {
		out.parts = append(out.parts, p.concatenation())
	}
	return only(out)
}

func (p *parser) concatenation() *syntax {
	out := &syntax{kind: concatenation, parts: []*syntax{p.repeated()}}
	for p.more() && !p.peek(")|&") {
		out.parts = append(out.parts, p.repeated())
	}
	return only(out)
}

// only returns the one part that there is, if so.
func only(s *syntax) *syntax {
	if len(s.parts) == 1 {
		return s.parts[0]
	}
	return s
}

// repeated reads something and how often it is.
func (p *parser) repeated() *syntax {
	out := p.complement()
	for p.peek("?*+{") {
		n := &syntax{kind: repetition, parts: []*syntax{out}, max: -1}
		switch p.next() {
		case '?':
			n.max = 1
		case '+':
			n.min = 1
		case '{':
			p.times(n)
		}
		out = n
	}
	return out
}

// times reads n} or n,} or n,m}.
func (p *parser) times(n *syntax) {
	n.min = p.count()
	n.max = n.min
	if p.take(',') {
		if n.max = -1; !p.peek("}") {
			n.max = p.count()
		}
	}
	if !p.take('}') {
		p.fail("expected '}' at position " + strconv.Itoa(p.at))
	}
	if n.max >= 0 && n.max < n.min {
		p.fail("a repetition of at least " + strconv.Itoa(n.min) + " and at most " + strconv.Itoa(n.max))
	}
}

func (p *parser) count() int {
	text := p.digits()
	n, err := strconv.Atoi(text)
	if text == "" || err != nil || n > maxRepeat {
		p.fail("a number up to " + strconv.Itoa(maxRepeat) + " expected at position " + strconv.Itoa(p.at))
	}
	return n
}

func (p *parser) digits() string {
	from := p.at
	for p.peek("0123456789") {
		p.at++
	}
	return p.pattern[from:p.at]
}

func (p *parser) complement() *syntax {
	if p.depth++; p.depth > maxDepth {
		p.fail("it is nested more than " + strconv.Itoa(maxDepth) + " deep")
	}
	defer func() { p.depth-- }()
	if p.take('~') {
		return &syntax{kind: complement, parts: []*syntax{p.complement()}}
	}
	if p.take('[') {
		return p.class()
	}
	return p.simple()
}

// class reads what is between brackets.
func (p *parser) class() *syntax {
	negated := p.take('^')
	var spans []span
	for first := true; p.more() && (first || !p.peek("]")); first = false {
		if named := p.named(); named != nil {
			spans = append(spans, named...)
			continue
		}
		s := span{from: p.character()}
		if s.to = s.from; p.take('-') {
			if p.peek("]") {
				spans = append(spans, span{'-', '-'})
			} else if s.to = p.character(); s.to < s.from {
				p.fail("a range from " + string(s.from) + " to " + string(s.to))
			}
		}
		spans = append(spans, s)
	}
	if !p.take(']') {
		p.fail("expected ']' at position " + strconv.Itoa(p.at))
	}
	if negated {
		spans = others(spans)
	}
	return &syntax{kind: characters, spans: spans}
}

// named reads a class that has a letter; nil: there is none.
func (p *parser) named() (spans []span) {
	if !p.classes || p.at+1 >= len(p.pattern) || p.pattern[p.at] != '\\' {
		return nil
	}
	letter := p.pattern[p.at+1]
	switch letter | 0x20 {
	case 'd':
		spans = []span{{'0', '9'}}
	case 's':
		spans = []span{{'\t', '\r'}, {' ', ' '}}
	case 'w':
		spans = []span{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}
	default:
		return nil
	}
	if p.at += 2; letter < 'a' {
		spans = others(spans)
	}
	return spans
}

// others returns the characters that are in none of some spans.
func others(spans []span) (out []span) {
	slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
	next := rune(0)
	for _, s := range spans {
		if s.from > next {
			out = append(out, span{next, s.from - 1})
		}
		next = max(next, s.to+1)
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}

// character reads one, perhaps behind a backslash.
func (p *parser) character() rune {
	p.take('\\')
	if !p.more() {
		p.fail("unexpected end of string")
		return 0
	}
	return p.next()
}

func (p *parser) simple() *syntax {
	switch {
	case p.take('.'):
		return &syntax{kind: characters, spans: []span{{0, unicode.MaxRune}}}
	case p.take('#'):
		return &syntax{kind: nothing}
	case p.take('@'):
		return &syntax{kind: complement, parts: []*syntax{{kind: nothing}}}
	case p.take('"'):
		return p.literal()
	case p.take('('):
		return p.group()
	case p.take('<'):
		return p.interval()
	}
	if spans := p.named(); spans != nil {
		return &syntax{kind: characters, spans: spans}
	}
	c := p.character()
	return &syntax{kind: characters, spans: []span{{c, c}}}
}

// literal reads what is between quotes.
func (p *parser) literal() *syntax {
	n := strings.IndexByte(p.pattern[p.at:], '"')
	if n < 0 {
		p.fail("expected '\"' at position " + strconv.Itoa(len(p.pattern)))
		return &syntax{kind: emptyString}
	}
	text := p.pattern[p.at : p.at+n]
	p.at += n + 1
	return exactly(text)
}

func exactly(text string) *syntax {
	out := &syntax{kind: concatenation}
	for _, r := range text {
		out.parts = append(out.parts, &syntax{kind: characters, spans: []span{{r, r}}})
	}
	if len(out.parts) == 0 {
		return &syntax{kind: emptyString}
	}
	return only(out)
}

func (p *parser) group() *syntax {
	if p.take(')') {
		return &syntax{kind: emptyString}
	}
	out := p.union()
	if !p.take(')') {
		p.fail("expected ')' at position " + strconv.Itoa(p.at))
	}
	return out
}
