package syntax

import (
	"math"
	"strconv"
	"strings"
)

// printer writes text that parses to the tree again, in both dialects.
type printer struct{ strings.Builder }

func printed(q Query) string {
	var p printer
	q.write(&p)
	return p.String()
}

func (All) String() string           { return "*:*" }
func (q Term) String() string        { return printed(q) }
func (q Number) String() string      { return printed(q) }
func (q Phrase) String() string      { return printed(q) }
func (q Prefix) String() string      { return printed(q) }
func (q Wildcard) String() string    { return printed(q) }
func (q Fuzzy) String() string       { return printed(q) }
func (q Regexp) String() string      { return printed(q) }
func (q Range) String() string       { return printed(q) }
func (q NumberRange) String() string { return printed(q) }
func (q Boosted) String() string     { return printed(q) }

// String prints the clauses without parentheses around them.
func (b *Boolean) String() string {
	var p printer
	if b.Minimum > 0 {
		b.write(&p)
	} else {
		b.list(&p)
	}
	return p.String()
}

func (All) write(p *printer) { p.WriteString("*:*") }

func (q Term) write(p *printer) {
	p.field(q.Field)
	p.word(q.Text)
}

func (q Number) write(p *printer) {
	p.field(q.Field)
	p.word(numberText(q.Value))
}

func (q Phrase) write(p *printer) {
	p.field(q.Field)
	p.quoted(q.Text)
	if q.Slop > 0 {
		p.WriteString("~" + strconv.Itoa(q.Slop))
	}
}

func (q Prefix) write(p *printer) {
	p.field(q.Field)
	p.word(q.Text)
	p.WriteByte('*')
}

func (q Wildcard) write(p *printer) {
	p.field(q.Field)
	for rest := q.Pattern; rest != ""; {
		n := strings.IndexAny(rest, `*?\`)
		if n < 0 {
			n = len(rest)
		}
		p.escape(rest[:n])
		if rest = rest[n:]; rest == "" {
			return
		}
		if n = 1; rest[0] == '\\' {
			n = 2
		}
		p.WriteString(rest[:n])
		rest = rest[n:]
	}
}

func (q Fuzzy) write(p *printer) {
	p.field(q.Field)
	p.word(q.Text)
	p.WriteString("~" + strconv.Itoa(q.Edits))
}

func (q Regexp) write(p *printer) {
	p.field(q.Field)
	p.WriteString("/" + q.Pattern + "/")
}

func (q Range) write(p *printer) {
	p.field(q.Field)
	p.bracket(q.Lower.Open || q.Lower.Inclusive, "[", "{")
	p.bound(q.Lower)
	p.WriteString(" TO ")
	p.bound(q.Upper)
	p.bracket(q.Upper.Open || q.Upper.Inclusive, "]", "}")
}

func (q NumberRange) write(p *printer) {
	p.field(q.Field)
	p.bracket(q.IncludesLower, "[", "{")
	p.WriteString(numberText(q.Lower) + " TO " + numberText(q.Upper))
	p.bracket(q.IncludesUpper, "]", "}")
}

func (q Boosted) write(p *printer) {
	by := "^" + strconv.FormatFloat(float64(q.Factor), 'f', -1, 32)
	if b, ok := q.Query.(*Boolean); ok {
		b.group(p, by)
		return
	}
	q.Query.write(p)
	p.WriteString(by)
}

func (b *Boolean) write(p *printer) { b.group(p, "") }

// group writes the clauses in parentheses, with the boost behind them.
func (b *Boolean) group(p *printer, boost string) {
	p.WriteByte('(')
	b.list(p)
	p.WriteString(")" + boost)
	if b.Minimum > 0 {
		p.WriteString("@" + strconv.Itoa(b.Minimum))
	}
}

func (b *Boolean) list(p *printer) {
	for i, c := range b.Clauses {
		if i > 0 {
			p.WriteByte(' ')
		}
		if c.And {
			p.WriteString("AND ")
		}
		switch c.Modifier {
		case Plus:
			p.WriteByte('+')
		case Negated:
			p.WriteByte('-')
		case Plain:
		}
		c.Query.write(p)
	}
}

func (p *printer) bracket(inclusive bool, closed, open string) {
	if inclusive {
		p.WriteString(closed)
	} else {
		p.WriteString(open)
	}
}

func (p *printer) bound(b Bound) {
	switch {
	case b.Open:
		p.WriteByte('*')
	case b.Text == "*":
		p.WriteString(`"\*"`)
	default:
		p.quoted(b.Text)
	}
}

func (p *printer) quoted(text string) {
	p.WriteByte('"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			p.WriteByte('\\')
		}
		p.WriteByte(text[i])
	}
	p.WriteByte('"')
}

func (p *printer) field(name string) {
	switch {
	case name == "*":
		p.WriteByte('*')
	case name == "fn", name != "" && '0' <= name[0] && name[0] <= '9':
		p.WriteByte('\\') // else the beginning of a function, or a number
		p.WriteByte(name[0])
		p.escape(name[1:])
	default:
		p.word(name)
	}
	p.WriteByte(':')
}

// word writes a word so that it is no operator.
func (p *printer) word(text string) {
	if text == "AND" || text == "OR" || text == "NOT" {
		p.WriteByte('\\')
	}
	p.escape(text)
}

// escape writes a text with every byte escaped that means something in either dialect.
func (p *printer) escape(text string) {
	for i := range len(text) {
		if strings.IndexByte(" \t\n\r+-!():^[]\"{}~*?\\/@<>=&|", text[i]) >= 0 || strings.HasPrefix(text[i:], "\u3000") {
			p.WriteByte('\\')
		}
		p.WriteByte(text[i])
	}
}

func numberText(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
