package analysis

import (
	"unicode"
	"unicode/utf8"
)

// Token is one word of a text. Positions count from 0 and go on over stop words.
type Token struct {
	Term       []byte // valid until the next token is asked for
	Position   int
	Start, End int // bytes of the text that it was made of
}

// Stream yields the tokens of one text after the other. It keeps its memory, so that the
// analyzers without a stemmer allocate nothing per token. It is for one goroutine; the
// zero value is ready for Reset.
type Stream struct {
	analyzer *Analyzer
	text     string
	classes  *[tabled]class
	at       int // where the next token is looked for
	runEnd   int // of a token that is too long, of which pieces were taken; nothing is looked for before
	position int // of the next token
	term     []byte
	pairs    pairs
}

// Reset begins with a text.
func (s *Stream) Reset(a *Analyzer, text string) {
	*s = Stream{analyzer: a, text: text, classes: classes(), term: s.term[:0]}
}

// Next returns the next token; not ok at the end of the text.
func (s *Stream) Next() (t Token, ok bool) {
	a := s.analyzer
	for {
		if a.pairs {
			t.Start, t.End, ok = s.pair()
		} else {
			t.Start, t.End, ok = s.piece()
		}
		if !ok {
			return Token{}, false
		}
		t.Position = s.position
		s.position++
		if t.Term, ok = s.filter(s.text[t.Start:t.End]); ok {
			return t, true
		}
	}
}

// filter makes a term of a piece of the text; not ok when nothing is left of it.
func (s *Stream) filter(piece string) (term []byte, ok bool) {
	a := s.analyzer
	if a.keepsCase {
		s.term = append(s.term[:0], piece...)
	} else {
		s.term = appendLower(s.term[:0], piece)
	}
	term = s.term
	for _, f := range a.before {
		term = f(term)
	}
	if a.stops(term) {
		return nil, false
	}
	for _, f := range a.after {
		term = f(term)
	}
	return term, len(term) > 0 || a.unlimited
}

// appendLower appends text in lower case, character by character.
func appendLower(dst []byte, text string) []byte {
	at := len(dst)
	dst = append(dst, text...)
	for i, c := range dst[at:] {
		switch {
		case c >= utf8.RuneSelf:
			return appendLowerRunes(dst[:at+i], text[i:])
		case 'A' <= c && c <= 'Z':
			dst[at+i] = c + ('a' - 'A')
		}
	}
	return dst
}

func appendLowerRunes(dst []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			dst = append(dst, byte(r))
		default:
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
	}
	return dst
}

// maxTerm is how long a token may be, in UTF-16 code units.
const maxTerm = 255

// piece returns the borders of the next token that is not too long.
func (s *Stream) piece() (start, end int, ok bool) {
	for {
		if start, end = s.at, s.runEnd; start >= end {
			if start, end, ok = s.analyzer.cut(s); !ok {
				return 0, 0, false
			}
		}
		s.at = end
		if end-start <= maxTerm {
			return start, end, true
		}
		if s.analyzer.unlimited {
			return start, end, true
		}
		cut := start + units(s.text[start:end], maxTerm)
		if cut == end {
			return start, end, true
		}
		if s.analyzer.splits {
			s.at, s.runEnd = cut, end
			return start, cut, true
		}
		s.position++ // it is dropped, and leaves a gap
	}
}

// units returns how many bytes at the beginning of text are n UTF-16 code units at most.
func units(text string, n int) int {
	for i, r := range text {
		if n--; r > 0xffff {
			n--
		}
		if n < 0 {
			return i
		}
	}
	return len(text)
}
