package analysis

import (
	"unicode"
	"unicode/utf8"
)

// pairs is the state of Stream.pair: the characters that it has read ahead.
type pairs struct {
	now    unit
	ready  bool // now holds a unit
	paired bool // now is the second of a pair
	run    int  // where the token ends whose characters are being read
}

// unit is a word, or one character of a script that is written without spaces.
type unit struct {
	start, end int
	character  bool
}

// pair finds the next token: two characters that stand side by side, one that stands
// alone, or a word of another script. So the pairs overlap.
func (s *Stream) pair() (start, end int, ok bool) {
	p := &s.pairs
	for {
		if !p.ready {
			if p.now, p.ready = s.unit(); !p.ready {
				return 0, 0, false
			}
			p.paired = false
		}
		u, paired := p.now, p.paired
		p.ready, p.paired = false, false
		if !u.character {
			return u.start, u.end, true
		}
		p.now, p.ready = s.unit()
		if p.ready && p.now.character && p.now.start == u.end {
			p.paired = true
			return u.start, p.now.end, true
		}
		if !paired {
			return u.start, u.end, true
		}
	}
}

// unit reads the next word or character.
func (s *Stream) unit() (u unit, ok bool) {
	p := &s.pairs
	if s.at < p.run {
		return s.character(s.at), true
	}
	start, end, ok := standard(s)
	if !ok {
		s.at = len(s.text)
		return unit{}, false
	}
	if !s.pairable(start) {
		s.at = end
		return unit{start: start, end: end}, true
	}
	p.run = end
	return s.character(start), true
}

// character returns the one at i, with its marks, as a unit.
func (s *Stream) character(i int) unit {
	_, n := s.classAt(i)
	s.at = s.extended(i + n)
	return unit{i, s.at, true}
}

// pairable reports whether the character at i is of a script whose characters are paired.
func (s *Stream) pairable(i int) bool {
	switch c, _ := s.classAt(i); c {
	case han, hiragana, katakana, southEast:
		return true
	case letter:
		return paired(s.text[i:])
	default:
		return false
	}
}

// paired reports whether a text begins with a letter of Korean, or with a mark of
// repetition among Han characters.
func paired(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.Is(unicode.Hangul, r) || unicode.Is(unicode.Han, r)
}
