package search

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"divan/shard/search/postings"
	"divan/shard/search/syntax"
)

// verdict is the result of checking a term for a query of many terms.
type verdict uint8

const (
	refused verdict = iota
	accepted
	behind // neither it nor any later term is one
)

// termsNode matches any of the terms that it accepts, all with one score.
type termsNode struct {
	field  string
	from   string // no term below is accepted
	accept func(term []byte) (verdict, error)
	boost  float64
}

// terms compiles a query of many terms.
func (c *compiler) terms(n *termsNode) (node, error) {
	if c.byID(n.field) {
		return c.accepted(n)
	}
	return n, nil
}

func (n *termsNode) open(s *scan) (matcher, error) {
	m, err := s.newSet(n.boost)
	if err != nil {
		return nil, err
	}
	return m, s.eachTerm(n.field, n.from, func(term, list []byte) (bool, error) {
		v, err := n.accept(term)
		switch {
		case err != nil:
			return false, err
		case v == accepted:
			return true, m.set.AddList(list)
		default:
			return v != behind, nil
		}
	})
}

// eachTerm is Reader.Terms for the chunk at hand, as long as the context lasts.
func (s *scan) eachTerm(field, from string, f func(term, list []byte) (bool, error)) error {
	looked := 0
	return s.r.Terms(s.chunk, field, []byte(from), func(term, list []byte) (bool, error) {
		if looked += 1 + len(term)/64; looked >= checkEvery {
			looked = 0
			if err := s.turn.check(); err != nil {
				return false, err
			}
		}
		return f(term, list)
	})
}

func prefixed(prefix string) func([]byte) (verdict, error) {
	return func(term []byte) (verdict, error) {
		if bytes.HasPrefix(term, []byte(prefix)) {
			return accepted, nil
		}
		return behind, nil
	}
}

// between accepts the terms of a range whose lower bound is where it begins.
func between(lower, upper syntax.Bound) func([]byte) (verdict, error) {
	return func(term []byte) (verdict, error) {
		order := -1
		if !upper.Open {
			order = cmp.Compare(string(term), upper.Text)
		}
		switch {
		case order > 0 || order == 0 && !upper.Inclusive:
			return behind, nil
		case !lower.Open && !lower.Inclusive && string(term) == lower.Text:
			return refused, nil
		}
		return accepted, nil
	}
}

// literalPrefix returns what all terms begin with that match a wildcard pattern.
func literalPrefix(pattern string) string {
	var out strings.Builder
	for i := 0; i < len(pattern) && pattern[i] != '*' && pattern[i] != '?'; i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		out.WriteByte(pattern[i])
	}
	return out.String()
}

// wildcard accepts the terms that match a pattern of syntax.Wildcard.
func wildcard(pattern string) func([]byte) (verdict, error) {
	const anyRun, anyOne = -1, -2
	var parts []rune
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		i += n
		switch {
		case r == '*':
			r = anyRun
		case r == '?':
			r = anyOne
		case r == '\\' && i < len(pattern):
			r, n = utf8.DecodeRuneInString(pattern[i:])
			i += n
		}
		parts = append(parts, r)
	}
	prefix := []byte(literalPrefix(pattern))
	return func(term []byte) (verdict, error) {
		if !bytes.HasPrefix(term, prefix) {
			return behind, nil
		}
		// A failed match goes on behind the last run of any characters, which takes one more.
		at, back, again := 0, -1, []byte(nil)
		for len(term) > 0 || at < len(parts) {
			r, n := utf8.DecodeRune(term)
			switch {
			case at < len(parts) && parts[at] == anyRun:
				back, again = at, term
				at++
			case len(term) > 0 && at < len(parts) && (parts[at] == anyOne || parts[at] == r):
				at, term = at+1, term[n:]
			case back >= 0 && len(again) > 0:
				_, n := utf8.DecodeRune(again)
				again = again[n:]
				at, term = back+1, again
			default:
				return refused, nil
			}
		}
		return accepted, nil
	}
}

// nearest is how many terms a fuzzy word stands for.
const nearest = 50

// similar is a term that is near a fuzzy word.
type similar struct {
	term  string
	edits int
}

func compareSimilar(a, b similar) int {
	return cmp.Or(cmp.Compare(a.edits, b.edits), strings.Compare(a.term, b.term))
}

// fuzzy compiles a word: any of the nearest terms, of which nearer ones weigh more.
func (c *compiler) fuzzy(q syntax.Fuzzy, boost float64) (node, error) {
	text := c.def.Analyzers.Of(q.Field).Normalize(q.Text)
	word := []rune(text)
	if q.Edits == 0 {
		return c.term(q.Field, []byte(text), boost)
	}
	best, err := c.similar(q.Field, word, q.Edits)
	if err != nil {
		return nil, err
	}
	out := &booleanNode{minimum: 1}
	for _, one := range best {
		shorter := max(1, min(len(word), utf8.RuneCountInString(one.term)))
		n, err := c.term(q.Field, []byte(one.term), boost*max(0, 1-float64(one.edits)/float64(shorter)))
		if err != nil {
			return nil, err
		}
		out.should = append(out.should, n)
	}
	return out, nil
}

// similar finds the nearest terms of a word, ascending.
func (c *compiler) similar(field string, word []rune, most int) (best []similar, err error) {
	d := distance{word: word, most: most}
	look := func(term []byte) {
		edits, ok := d.of(term)
		if !ok {
			return
		}
		one := similar{string(term), edits}
		if i, found := slices.BinarySearchFunc(best, one, compareSimilar); !found && i < nearest {
			best = slices.Insert(best, i, one)
			best = best[:min(len(best), nearest)]
		}
	}
	if c.byID(field) {
		return best, c.scan.eachNamed(field, "", func(term []byte, _ postings.Number) (bool, error) {
			look(term)
			return true, nil
		})
	}
	for c.scan.chunk = range c.scan.r.Chunks() {
		if err := c.scan.eachTerm(field, "", func(term, _ []byte) (bool, error) {
			look(term)
			return true, nil
		}); err != nil {
			return nil, err
		}
	}
	return best, nil
}

// distance measures how many insertions, deletions, replacements and swaps of neighbours
// make one word of another, up to a number.
type distance struct {
	word  []rune
	most  int
	term  []rune
	lines [3][]int
}

func (d *distance) of(term []byte) (edits int, ok bool) {
	if len(term) > (len(d.word)+d.most)*utf8.UTFMax {
		return 0, false
	}
	d.term = d.term[:0]
	for rest := term; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		d.term, rest = append(d.term, r), rest[n:]
	}
	if n := len(d.term) - len(d.word); n > d.most || -n > d.most {
		return 0, false
	}
	for i := range d.lines {
		d.lines[i] = slices.Grow(d.lines[i][:0], len(d.word)+1)[:len(d.word)+1]
	}
	before, last, line := d.lines[0], d.lines[1], d.lines[2]
	for j := range min(len(line), d.most+2) {
		line[j] = j
	}
	// Further than most from the diagonal all is beyond most: a line is a few numbers, and the
	// ones beside them.
	for i, r := range d.term {
		before, last, line = last, line, before
		from, to := max(0, i-d.most), min(len(d.word), i+d.most+1)
		if line[from] = d.most + 1; from == 0 {
			line[0] = i + 1
		}
		if to < len(d.word) {
			line[to+1] = d.most + 1
		}
		least := line[from]
		for j := from; j < to; j++ {
			w, replaced := d.word[j], last[j]
			if r != w {
				replaced++
			}
			line[j+1] = min(replaced, last[j+1]+1, line[j]+1)
			if i > 0 && j > 0 && r == d.word[j-1] && d.term[i-1] == w {
				line[j+1] = min(line[j+1], before[j-1]+1)
			}
			least = min(least, line[j+1])
		}
		if least > d.most {
			return 0, false
		}
	}
	edits = line[len(d.word)]
	return edits, edits <= d.most
}
