package script

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendNumber prints f as JavaScript does; what is no finite number is null.
func appendNumber(dst []byte, f float64) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == 0:
		return append(dst, '0')
	case abs < 1e-6 || abs >= 1e21:
		at := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		// 1e-07 is 1e-7 in JavaScript.
		if n := len(dst); n-at >= 4 && dst[n-4] == 'e' && dst[n-2] == '0' {
			dst[n-2] = dst[n-1]
			dst = dst[:n-1]
		}
		return dst
	default:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
}

// hex are the digits of escapes.
const hex = "0123456789abcdef"

// appendCharacters quotes a string of the engine that is no rope.
func appendCharacters(dst []byte, address uintptr) []byte {
	latin, wide := stringAt(address)
	if wide != nil {
		return appendWide(dst, wide)
	}
	return appendLatin(dst, latin)
}

// appendLatin quotes Latin-1.
func appendLatin(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i, c := range s {
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		if c >= utf8.RuneSelf {
			dst = append(dst, 0xc0|c>>6, 0x80|c&0x3f)
		} else {
			dst = appendEscape(dst, c)
		}
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendWide quotes UTF-16. A lone surrogate becomes U+FFFD, as couchjs writes it: no
// text that leaves a script has half a character.
func appendWide(dst []byte, s []uint16) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c < 0x20 || c == '"' || c == '\\':
			dst = appendEscape(dst, byte(c))
		case c < utf8.RuneSelf:
			dst = append(dst, byte(c))
		case !utf16.IsSurrogate(rune(c)):
			dst = utf8.AppendRune(dst, rune(c))
		default:
			if i+1 < len(s) {
				if r := utf16.DecodeRune(rune(c), rune(s[i+1])); r != utf8.RuneError {
					dst = utf8.AppendRune(dst, r)
					i++
					continue
				}
			}
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	return append(dst, '"')
}

// appendString quotes UTF-8 in which a lone surrogate has three bytes: that
// becomes U+FFFD.
func appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == 0xed && i+2 < len(s) && s[i+1] >= 0xa0:
			dst = append(dst, s[start:i]...)
			dst = utf8.AppendRune(dst, utf8.RuneError)
			i += 2
		case c >= 0x20 && c != '"' && c != '\\':
			continue
		default:
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
		}
		start = i + 1
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// replaceSurrogates replaces the escapes of a JSON text that are lone surrogates by
// U+FFFD. The engine's JSON.stringify writes no other escapes of surrogates.
func replaceSurrogates(text []byte) []byte {
	out := text[:0] // what is written is shorter than what it replaces
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			out = append(out, text[i])
		case text[i+1] == 'u' && i+5 < len(text) && text[i+2] == 'd' && text[i+3] >= '8':
			out = utf8.AppendRune(out, utf8.RuneError)
			i += 5
		default:
			out = append(out, text[i], text[i+1])
			i++
		}
	}
	return out
}

// appendEscape appends a character that JSON does not have as such.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		c = 'b'
	case '\f':
		c = 'f'
	case '\n':
		c = 'n'
	case '\r':
		c = 'r'
	case '\t':
		c = 't'
	default:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(dst, '\\', c)
}
