package analysis

// The tokens of the standard analyzer are the words of UAX #29 that hold a letter or a
// digit. Characters of Han and Hiragana are words of their own, those of Thai and its
// neighbours run on. The colon joins letters, as it did when Lucene was made.

// standard finds the next word at or after s.at.
func standard(s *Stream) (start, end int, ok bool) {
	for i := s.at; i < len(s.text); {
		c, n := s.classAt(i)
		switch c {
		case letter, digit, hebrew, katakana, connector:
			if end, ok = s.word(i); ok {
				return i, end, true
			}
			n = end - i
		case han, hiragana:
			return i, s.extended(i + n), true
		case southEast:
			return i, s.southEast(i), true
		case regional, emoji, textEmoji:
			if end := s.picture(i); end > 0 && s.analyzer.pictures {
				return i, end, true
			}
		default:
		}
		i += n
	}
	return 0, 0, false
}

// extended returns where the marks end that belong to the character before i.
func (s *Stream) extended(i int) int {
	for i < len(s.text) {
		c, n := s.classAt(i)
		if c != extend && c != joiner {
			break
		}
		i += n
	}
	return i
}

// word returns where the word ends that begins at i, and whether it holds more than
// connectors.
func (s *Stream) word(i int) (end int, ok bool) {
	last := other
	for i < len(s.text) {
		c, n := s.classAt(i)
		switch c {
		case letter, digit, hebrew:
			if last == katakana {
				return i, ok
			}
			ok = true
		case katakana:
			if last != katakana && last != connector && last != other {
				return i, ok
			}
			ok = true
		case connector:
		case extend, joiner:
			i += n
			continue
		default:
			next, goes := s.across(i, n, c, last)
			if !goes {
				return next, ok
			}
			i = next
			continue
		}
		last, i = c, i+n
		if c == letter {
			i = s.plainLetters(i)
		}
	}
	return i, ok
}

// plainLetters returns where a run of letters of ASCII ends: most of most words.
func (s *Stream) plainLetters(i int) int {
	for i < len(s.text) {
		c := s.text[i] | 0x20
		if c < 'a' || 'z' < c {
			break
		}
		i++
	}
	return i
}

// across returns where a word goes on behind a character between letters or digits; and
// not goes where the word ends there.
func (s *Stream) across(i, n int, c, last class) (next int, goes bool) {
	letters := last == letter || last == hebrew
	if c < midLetter || c > doubleQuote || !letters && last != digit {
		return i, false
	}
	next = s.extended(i + n)
	after := other
	if next < len(s.text) {
		after, _ = s.classAt(next)
	}
	switch {
	case letters && (c == midLetter || c == midBoth || c == singleQuote) && (after == letter || after == hebrew),
		last == digit && (c == midNumber || c == midBoth || c == singleQuote) && after == digit,
		last == hebrew && c == doubleQuote && after == hebrew:
		return next, true
	case last == hebrew && c == singleQuote:
		return next, false
	}
	return i, false
}

// southEast returns where a run of a script without spaces ends.
func (s *Stream) southEast(i int) int {
	for i < len(s.text) {
		c, n := s.classAt(i)
		if c != southEast && c != extend && c != joiner {
			break
		}
		i += n
	}
	return i
}

// picture returns where the emoji ends that begins at i, 0 when it is none: a flag, or
// pictures that are joined.
func (s *Stream) picture(i int) int {
	c, n := s.classAt(i)
	i += n
	if c == regional {
		if i < len(s.text) {
			if c, n := s.classAt(i); c == regional {
				return s.extended(i + n)
			}
		}
		return 0
	}
	end := s.extended(i)
	if c == textEmoji && !selected(s.text[i:end]) {
		return 0
	}
	for end < len(s.text) && joined(s.text[:end]) {
		c, n := s.classAt(end)
		if c != emoji && c != textEmoji {
			break
		}
		end = s.extended(end + n)
	}
	return end
}
