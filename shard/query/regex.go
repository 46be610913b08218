package query

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/dlclark/regexp2"

	"divan/storage/doc"
)

// Limits of regular expressions. CouchDB's are those of PCRE: a match that
// takes more than ten million steps is none.
const (
	// maxPattern is the length of a pattern in bytes.
	maxPattern = 4096
	// maxWork bounds the size of a program times the length of the text, which
	// is what a match in linear time can cost.
	maxWork = 1 << 30
	// matchTime bounds a match that can take exponential time, in nanoseconds;
	// the engine looks at the clock ten times a second.
	matchTime = 100_000_000
)

// pattern is a regular expression with the meaning Perl gives it, but that
// text is characters and not bytes.
type pattern struct {
	linear *regexp.Regexp  // matches in linear time
	size   int             // instructions of linear
	full   *regexp2.Regexp // look-around, back-references and the like
}

// compile reports false for what is no pattern.
func compile(text string) (p pattern, ok bool) {
	text = trailingNewline(text)
	if re, err := regexp.Compile(text); err == nil {
		return pattern{linear: re, size: programSize(text)}, true
	}
	defer func() {
		if recover() != nil { // of a bug in the engine
			ok = false
		}
	}()
	re, err := regexp2.Compile(text, regexp2.RE2)
	if err != nil {
		return pattern{}, false
	}
	re.MatchTimeout = matchTime
	return pattern{full: re}, true
}

// programSize returns the number of instructions of a pattern that compiles.
func programSize(text string) int {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// match reports whether the pattern is somewhere in a string, given with its
// quotes. A match that exceeds the limits is none.
func (p *pattern) match(v []byte) bool {
	if len(v) < 2 {
		return false
	}
	if p.linear == nil {
		return p.matchFull(v)
	}
	if p.size*len(v) > maxWork {
		return false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return p.linear.Match(v[1 : len(v)-1])
	}
	s, ok := doc.Unquote(v)
	return ok && p.linear.MatchString(s)
}

func (p *pattern) matchFull(v []byte) (ok bool) {
	defer func() {
		if recover() != nil { // of a bug in the engine
			ok = false
		}
	}()
	s, ok := doc.Unquote(v)
	if !ok {
		return false
	}
	re := *p.full // it keeps the stacks of its matches, which can be many megabytes
	ok, err := re.MatchString(s)
	return ok && err == nil
}

// trailingNewline rewrites a pattern so that $ also matches before a newline
// at the end of the text, as it does in Perl and does not in RE2.
func trailingNewline(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		n := atom(text[i:])
		if text[i] == '$' {
			out.WriteString(`(?:$|\n\z)`)
		} else {
			out.WriteString(text[i : i+n])
		}
		i += n
	}
	return out.String()
}

// atom returns the length of what a pattern starts with, as far as a $ in it
// would not be an assertion: an escape, a class, a comment, or one byte.
func atom(text string) int {
	switch {
	case strings.HasPrefix(text, `\Q`):
		return through(text, 2, `\E`)
	case strings.HasPrefix(text, "(?#"):
		return through(text, 3, ")")
	case text[0] == '\\':
		return min(2, len(text))
	case text[0] == '[':
		return class(text)
	}
	return 1
}

// through returns the length of text up to the end of the first end after from.
func through(text string, from int, end string) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

// class returns the length of the class of characters that text starts with.
func class(text string) int {
	i := 1
	if i < len(text) && text[i] == '^' {
		i++
	}
	if i < len(text) && text[i] == ']' {
		i++ // first of all it is a character
	}
	for i < len(text) {
		switch {
		case text[i] == ']':
			return i + 1
		case strings.HasPrefix(text[i:], "[:") && strings.Contains(text[i:], ":]"):
			i += through(text[i:], 2, ":]")
		case text[i] == '\\':
			i += min(2, len(text)-i)
		default:
			i++
		}
	}
	return len(text)
}

// newRegex compiles the argument of $regex.
func newRegex(arg []byte, b *budget) (*node, error) {
	text, _ := doc.Unquote(arg) // canonical
	if len(text) > maxPattern {
		return nil, invalid("bad_arg", fmt.Sprintf("Bad argument for operator $regex: it is longer than %d bytes", maxPattern))
	}
	if err := b.takePattern(trailingNewline(text)); err != nil {
		return nil, err
	}
	re, ok := compile(text)
	if !ok {
		return nil, badArg("$regex", arg)
	}
	return &node{op: opRegex, regex: re, arg: literal{text: arg}}, nil
}
