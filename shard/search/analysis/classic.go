package analysis

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// The older grammar of Lucene knows e-mail addresses, host names, acronyms, company
// names and numbers with signs between; of those that begin at a place the longest counts.

// classicLimit is how far it looks for the end of one, in bytes. Longer tokens are
// dropped anyway.
const classicLimit = 4 * maxTerm

// classicKind says what a character is for that grammar.
type classicKind uint8

const (
	classicOther classicKind = iota
	classicLetter
	classicDigit
	classicCJ // a token of one character
)

func (s *Stream) classicAt(i int) (classicKind, int) {
	r, n := rune(s.text[i]), 1
	if r >= utf8.RuneSelf {
		r, n = utf8.DecodeRuneInString(s.text[i:])
	}
	switch {
	case isLetter(r) && r < 0x3040:
		return classicLetter, n
	case unicode.IsDigit(r):
		return classicDigit, n
	case 0x3040 <= r && r <= 0x318f, 0x3300 <= r && r <= 0x337f, 0x3400 <= r && r <= 0x3d2d, 0x4e00 <= r && r <= 0x9fff, 0xf900 <= r && r <= 0xfaff, 0xff65 <= r && r <= 0xff9f:
		return classicCJ, n
	case isLetter(r), 0x0e00 <= r && r <= 0x0e59:
		return classicLetter, n
	}
	return classicOther, n
}

// classic finds the next token of that grammar.
func classic(s *Stream) (start, end int, ok bool) {
	for i := s.at; i < len(s.text); {
		kind, n := s.classicAt(i)
		switch kind {
		case classicLetter, classicDigit:
			return i, s.classicEnd(i), true
		case classicCJ:
			return i, i + n, true
		case classicOther:
		}
		i += n
	}
	return 0, 0, false
}

// part is a run of letters and digits.
type part struct {
	end             int
	letters, digits bool
	one             bool // a single letter
}

func (s *Stream) part(i int) part {
	p := part{end: i}
	for count := 0; p.end < len(s.text); count++ {
		kind, n := s.classicAt(p.end)
		if kind != classicLetter && kind != classicDigit {
			break
		}
		p.letters = p.letters || kind == classicLetter
		p.digits = p.digits || kind == classicDigit
		p.one = count == 0 && kind == classicLetter
		p.end += n
	}
	return p
}

// classicEnd returns where the longest token that begins at i ends.
func (s *Stream) classicEnd(i int) int {
	first := s.part(i)
	end := first.end
	if first.letters && !first.digits {
		end = max(end, s.apostrophes(first.end), s.company(first.end))
	}
	if first.one {
		end = max(end, s.acronym(i, first.end))
	}
	return max(end, s.host(i, first.end), s.number(i, first), s.address(i, first.end))
}

// follows returns the part behind one of the separators at i.
func (s *Stream) follows(i int, separators string) (p part, ok bool) {
	if i >= len(s.text) || !containsByte(separators, s.text[i]) {
		return part{}, false
	}
	p = s.part(i + 1)
	return p, p.end > i+1
}

func containsByte(s string, c byte) bool {
	for i := range len(s) {
		if s[i] == c {
			return true
		}
	}
	return false
}

// apostrophes reads O'Reilly on from its first letters.
func (s *Stream) apostrophes(end int) int {
	for {
		p, ok := s.follows(end, "'")
		if !ok {
			return end
		}
		if p.digits { // the letters before them
			for at := end + 1; ; {
				kind, n := s.classicAt(at)
				if kind != classicLetter {
					if at > end+1 {
						return at
					}
					return end
				}
				at += n
			}
		}
		end = p.end
	}
}

// company reads AT&T.
func (s *Stream) company(end int) int {
	if p, ok := s.follows(end, "&@"); ok && !p.digits {
		return p.end
	}
	return 0
}

// acronym reads U.S.A. with its last dot.
func (s *Stream) acronym(i, end int) int {
	for count := 0; end < len(s.text) && end-i <= classicLimit && s.text[end] == '.'; count++ {
		p := s.part(end + 1)
		if !p.one {
			if count == 0 {
				return 0
			}
			return end + 1
		}
		end = p.end
	}
	return 0
}

// host reads www.example.com.
func (s *Stream) host(i, end int) int {
	for {
		p, ok := s.follows(end, ".")
		if !ok || p.end-i > classicLimit {
			return end
		}
		end = p.end
	}
}

// number reads parts with signs between, of which every second one holds a digit.
func (s *Stream) number(i int, first part) int {
	longest := 0
	for _, due := range []bool{true, false} { // is the first part one of those?
		if due && !first.digits {
			continue
		}
		end, due := first.end, !due
		for {
			p, ok := s.follows(end, "_-/.,")
			if !ok || due && !p.digits || p.end-i > classicLimit {
				break
			}
			end, due = p.end, !due
		}
		if end > first.end {
			longest = max(longest, end)
		}
	}
	return longest
}

// address reads an e-mail address.
func (s *Stream) address(i, end int) int {
	for {
		if p, ok := s.follows(end, "@"); ok {
			last := p.end
			for {
				p, ok := s.follows(last, ".-")
				if !ok {
					break
				}
				last = p.end
			}
			if last > p.end {
				return last
			}
			return 0
		}
		p, ok := s.follows(end, ".-_")
		if !ok || p.end-i > classicLimit {
			return 0
		}
		end = p.end
	}
}

// undotted removes the dots of acronyms, and the possessive of other terms, in lower case.
func undotted(term []byte) []byte {
	if n := len(term); n > 2 && term[n-1] == 's' && term[n-2] == '\'' {
		return term[:n-2]
	}
	if len(term) < 4 || term[len(term)-1] != '.' {
		return term
	}
	return bytes.ReplaceAll(term, []byte{'.'}, nil)
}
