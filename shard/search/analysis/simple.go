package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// selected reports whether marks ask for the picture of a character.
func selected(marks string) bool { return strings.Contains(marks, "\ufe0f") }

// joined reports whether a text ends with a zero-width joiner.
func joined(text string) bool { return strings.HasSuffix(text, "\u200d") }

// keyword takes the whole text as one token, the empty one too.
func keyword(s *Stream) (start, end int, ok bool) {
	if s.position > 0 {
		return 0, 0, false
	}
	return 0, len(s.text), true
}

// letters finds the next run of letters.
func letters(s *Stream) (start, end int, ok bool) { return s.run(isLetter) }

// words finds the next run of what is no white space.
func words(s *Stream) (start, end int, ok bool) { return s.run(isVisible) }

func (s *Stream) run(in func(rune) bool) (start, end int, ok bool) {
	start = -1
	for i := s.at; i < len(s.text); {
		r, n := rune(s.text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s.text[i:])
		}
		switch {
		case in(r):
			if start < 0 {
				start = i
			}
		case start >= 0:
			return start, i, true
		}
		i += n
	}
	return start, len(s.text), start >= 0
}

func isLetter(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return unicode.IsLetter(r)
}

// isVisible is the negation of Java's Character.isWhitespace: spaces that do not break
// lines are visible.
func isVisible(r rune) bool {
	switch {
	case r == ' ', '\t' <= r && r <= '\r', 0x1c <= r && r <= 0x1f:
		return false
	case r < utf8.RuneSelf, r == 0xa0, r == 0x2007, r == 0x202f:
		return true
	}
	return !unicode.Is(unicode.Z, r)
}
