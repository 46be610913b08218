package doc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Patterns for looking at eight bytes of a string at once.
const (
	lowBits    = 0x0101010101010101
	highBits   = 0x8080808080808080
	allSpaces  = ' ' * lowBits
	allQuotes  = '"' * lowBits
	allEscapes = '\\' * lowBits
)

// plain returns the place of the first byte at or after i that is not an
// ordinary character of a string: a quote, a backslash, a control character or
// a byte outside ASCII; len(src) when there is none.
func plain(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		quote, escape := w^allQuotes, w^allEscapes
		// In each byte the top bit is set when the byte is special; a borrow
		// can spoil only bytes above the first special one.
		special := (w | (w-allSpaces)&^w | (quote-lowBits)&^quote | (escape-lowBits)&^escape) & highBits
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for ; i < len(src); i++ {
		if c := src[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// str reads a string; src[pos] is its opening quote.
func (s *scanner) str() bool {
	i := s.pos + 1
	for {
		i = plain(s.src, i)
		if i >= len(s.src) {
			return false
		}
		switch c := s.src[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c == '\\':
			if i = s.escape(i); i < 0 {
				return false
			}
		case c < ' ':
			return false
		default:
			r, n := utf8.DecodeRune(s.src[i:])
			if r == utf8.RuneError && n == 1 {
				return false
			}
			i += n
		}
	}
}

// escape reads the escape at src[i], a backslash, and returns the place after
// it, -1 when it is malformed.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.src) {
		return -1
	}
	switch s.src[i+1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case '/':
		s.flushTo(i)
		s.mark = i + 1 // the slash itself stays
		return i + 2
	case 'u':
		return s.unicode(i)
	}
	return -1
}

// unicode reads the escape \uNNNN at src[i], together with the one that
// follows when it is the first half of a surrogate pair.
func (s *scanner) unicode(i int) int {
	r, next := unicodeEscape(s.src, i)
	if next < 0 {
		return -1
	}
	if r < ' ' && s.canonicalControl(i, byte(r)) {
		return next
	}
	s.flushTo(i)
	s.mark = next
	if !s.drop {
		s.dst = appendRune(s.dst, r)
	}
	return next
}

// canonicalControl reports whether the escape \uNNNN at src[i] of the control
// character c is written as AppendString does.
func (s *scanner) canonicalControl(i int, c byte) bool {
	return shortEscape(c) == 0 && s.src[i+5] == upperHex[c&15]
}

// unicodeEscape decodes the escape \uNNNN at src[i] and, for the first half of
// a surrogate pair, the second one after it. next is -1 when it is malformed or
// a surrogate stands alone.
func unicodeEscape(src []byte, i int) (r rune, next int) {
	hi := hex4(src, i+2)
	switch {
	case hi < 0, 0xdc00 <= hi && hi <= 0xdfff:
		return 0, -1
	case hi < 0xd800 || hi > 0xdbff:
		return hi, i + 6
	}
	if i+8 > len(src) || src[i+6] != '\\' || src[i+7] != 'u' {
		return 0, -1
	}
	lo := hex4(src, i+8)
	if lo < 0xdc00 || lo > 0xdfff {
		return 0, -1
	}
	return 0x10000 + (hi-0xd800)<<10 + (lo - 0xdc00), i + 12
}

// hex4 returns the value of four hexadecimal digits at src[i:], -1 when they
// are not there.
func hex4(src []byte, i int) rune {
	if i+4 > len(src) {
		return -1
	}
	v := rune(0)
	for _, c := range src[i : i+4] {
		d := hexDigit(c)
		if d > 15 {
			return -1
		}
		v = v<<4 | rune(d)
	}
	return v
}

const upperHex = "0123456789ABCDEF"

// shortEscape returns the letter of the two-character escape for a control
// character, 0 when it has none.
func shortEscape(c byte) byte {
	switch c {
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// appendRune appends one character of a string as CouchDB writes it.
func appendRune(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r < ' ':
		return appendControl(dst, byte(r))
	}
	return utf8.AppendRune(dst, r)
}

func appendControl(dst []byte, c byte) []byte {
	if e := shortEscape(c); e != 0 {
		return append(dst, '\\', e)
	}
	return append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
}

// AppendString appends s as a JSON string, quotes included, as CouchDB writes
// it: only quote, backslash and control characters are escaped. Bytes that are
// no UTF-8 become U+FFFD, so that the result is always valid.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\' || c < ' ':
			dst = append(dst, s[from:i]...)
			dst = appendRune(dst, rune(c))
			i++
			from = i
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[from:i]...)
				dst = utf8.AppendRune(dst, utf8.RuneError)
				from = i + n
			}
			i += n
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// Unquote returns the text of a JSON string, false when value is none or is
// malformed. White space around it is not accepted.
func Unquote(value []byte) (string, bool) {
	text, ok := unquoted(value)
	return string(text), ok
}

// unquoted is Unquote; the result aliases value when that has no escapes.
func unquoted(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	if end := plain(value, 1); end == len(value)-1 && value[end] == '"' {
		return value[1:end:end], true
	}
	return appendUnquoted(make([]byte, 0, len(value)), value)
}

// appendUnquoted appends the text of a JSON string.
func appendUnquoted(dst, value []byte) ([]byte, bool) {
	i := 1
	for {
		end := plain(value, i)
		dst = append(dst, value[i:end]...)
		if end >= len(value) {
			return dst, false
		}
		i = end
		switch c := value[i]; {
		case c == '"':
			return dst, i == len(value)-1
		case c < ' ':
			return dst, false
		case c != '\\':
			r, n := utf8.DecodeRune(value[i:])
			if r == utf8.RuneError && n == 1 {
				return dst, false
			}
			dst = append(dst, value[i:i+n]...)
			i += n
		default:
			var r rune
			if r, i = unescape(value, i); i < 0 {
				return dst, false
			}
			dst = utf8.AppendRune(dst, r)
		}
	}
}

// unescape decodes the escape at src[i]; next is -1 when it is malformed.
func unescape(src []byte, i int) (r rune, next int) {
	if i+1 >= len(src) {
		return 0, -1
	}
	switch c := src[i+1]; c {
	case '"', '\\', '/':
		return rune(c), i + 2
	case 'b':
		return '\b', i + 2
	case 'f':
		return '\f', i + 2
	case 'n':
		return '\n', i + 2
	case 'r':
		return '\r', i + 2
	case 't':
		return '\t', i + 2
	case 'u':
		return unicodeEscape(src, i)
	}
	return 0, -1
}
