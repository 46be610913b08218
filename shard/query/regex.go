package query

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"divan/storage/doc"
)

// Limits of regular expressions. CouchDB's are those of PCRE: a match that
// takes more than ten million steps is none. Here it is an error.
const (
	// maxPattern is the length of a pattern in bytes.
	maxPattern = 4096
	// maxRepeated is the length of a pattern for the slower engine when what it
	// repeats by number is written out; PCRE's programs have at most as many bytes.
	maxRepeated = 1 << 16
	// matchTime bounds a match that can take exponential time; the engine looks at
	// the clock ten times a second. It keeps a stack, which grows by some 600 MB
	// a second at worst.
	matchTime = 200 * time.Millisecond
	// wholeWork is up to which estimate a match is made at one go.
	wholeWork = 100 * time.Millisecond
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
	if repeated(text) > maxRepeated {
		return pattern{}, false
	}
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
// quotes. It takes what that costs from w, where a failure is kept.
func (p *pattern) match(w *Work, v []byte) bool {
	if len(v) < 2 {
		return false
	}
	text := v[1 : len(v)-1]
	if p.linear == nil || bytes.IndexByte(v, '\\') >= 0 {
		s, ok := doc.Unquote(v)
		if !ok || !w.take(perByte*len(v)) {
			return false
		}
		if p.linear == nil {
			return p.matchFull(w, s)
		}
		text = []byte(s)
	}
	cost := perInst * p.size * len(text)
	if cost <= int(smallWork)/10 {
		return w.take(cost) && p.linear.Match(text) // looking at the clock would be as dear
	}
	if prefix, _ := p.linear.LiteralPrefix(); !bytes.Contains(text, []byte(prefix)) {
		return w.take(perByte*len(text)) && false
	}
	if cost > int(turnWork) && !w.pass() {
		return false
	}
	if cost <= int(wholeWork) {
		start := w.now()
		ok := p.linear.Match(text)
		return w.take(min(cost, int(w.now().Sub(start)))) && ok
	}
	r := &runes{work: w, text: text, each: perInst * p.size, start: w.now()}
	return p.linear.MatchReader(r) && w.err == nil
}

// runes is a text that ends when the work of its request is spent.
type runes struct {
	work  *Work
	text  []byte
	each  int       // the cost of a character
	cost  int       // of those read since start
	start time.Time // when the work was counted last
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (c rune, size int, err error) {
	if r.cost += r.each; r.cost > int(turnWork) {
		now := r.work.now()
		if !r.work.take(min(r.cost, int(now.Sub(r.start)))) {
			return 0, 0, io.EOF
		}
		r.cost, r.start = 0, now
	}
	if len(r.text) == 0 {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.text)
	r.text = r.text[size:]
	return c, size, nil
}

func (p *pattern) matchFull(w *Work, s string) (ok bool) {
	if !w.pass() {
		return false
	}
	defer func() {
		if recover() != nil { // of a bug in the engine
			ok, w.err = false, expensive("a regular expression cannot be matched")
		}
	}()
	re := *p.full // it keeps the stacks of its matches, which can be many megabytes
	start := w.now()
	ok, err := re.MatchString(s)
	if err != nil {
		w.err = expensive(fmt.Sprintf("a regular expression with look-around or back-references takes more than %s", re.MatchTimeout))
	}
	return w.take(int(w.now().Sub(start))) && ok && err == nil
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

// repeated returns the length of a pattern when what it repeats by number is
// written out, or something above maxRepeated.
func repeated(text string) int {
	var open []int // the lengths of what stands before each open group
	total, last := 0, 0
	for i := 0; i < len(text); {
		n := atom(text[i:])
		switch low, high, size := counts(text[i:]); {
		case size > 0:
			n = size
			total += last * (max(low, high, 1) - 1)
		case text[i] == '(' && n == 1:
			open = append(open, total)
			total, last = 0, 0
		case text[i] == ')' && len(open) > 0:
			last = total + 2
			total = last + open[len(open)-1]
			open = open[:len(open)-1]
		case text[i] != '*' && text[i] != '+' && text[i] != '?':
			total, last = total+1, 1
		}
		if total > maxRepeated {
			return total
		}
		i += n
	}
	for _, before := range open {
		total += before
	}
	return total
}

// counts reads {low}, {low,} or {low,high}; size is its length, 0 when it is none.
func counts(text string) (low, high, size int) {
	if text[0] != '{' {
		return 0, 0, 0
	}
	inner, _, ok := strings.Cut(text[1:], "}")
	from, to, _ := strings.Cut(inner, ",")
	low, err := strconv.Atoi(from)
	if !ok || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, 0, 0
	}
	if high, err = strconv.Atoi(to); err != nil && !errors.Is(err, strconv.ErrRange) {
		high = low
	}
	return min(low, maxRepeated), min(high, maxRepeated), len(inner) + 2
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
