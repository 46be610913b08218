package query

import (
	"bytes"
	"regexp"

	"github.com/dlclark/regexp2"

	"divan/storage/doc"
)

// Limits of regular expressions.
const (
	// maxPattern is the length of a pattern in bytes.
	maxPattern = 4096
	// matchTime bounds one match of a pattern that can take exponential time,
	// in nanoseconds. A match that takes longer is none.
	matchTime = 50_000_000
)

// pattern is a regular expression with the meaning Perl gives it.
type pattern struct {
	linear *regexp.Regexp  // matches in linear time
	full   *regexp2.Regexp // look-around, back-references and the like
}

// compile reports false for what is no pattern, or too long.
func compile(text string) (pattern, bool) {
	if len(text) > maxPattern {
		return pattern{}, false
	}
	if re, err := regexp.Compile(text); err == nil {
		return pattern{linear: re}, true
	}
	re, err := regexp2.Compile(text, regexp2.None)
	if err != nil {
		return pattern{}, false
	}
	re.MatchTimeout = matchTime
	return pattern{full: re}, true
}

// match reports whether the pattern is somewhere in a string, given with its
// quotes.
func (p *pattern) match(v []byte) bool {
	if p.linear != nil && len(v) > 1 && bytes.IndexByte(v, '\\') < 0 {
		return p.linear.Match(v[1 : len(v)-1])
	}
	s, ok := doc.Unquote(v)
	if !ok {
		return false
	}
	if p.linear != nil {
		return p.linear.MatchString(s)
	}
	ok, err := p.full.MatchString(s)
	return ok && err == nil
}
