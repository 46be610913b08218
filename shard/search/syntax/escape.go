package syntax

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// What is wrong with an escape, in the words of Lucene.
const (
	endsWithEscape  = "Term can not end with escape character."
	truncatedEscape = "Truncated unicode escape sequence."
	badEscape       = "Non-hex character in Unicode escape sequence: "
)

// unescape returns the text without its escapes, or what is wrong with one. Halves
// of a character that are escaped one after the other become that character, a half
// alone U+FFFD.
func unescape(text string) (plain, wrong string) {
	at := strings.IndexByte(text, '\\')
	if at < 0 {
		return text, ""
	}
	out := make([]byte, at, len(text))
	copy(out, text)
	for text = text[at:]; text != ""; {
		if text[0] != '\\' {
			out, text = append(out, text[0]), text[1:]
			continue
		}
		r, n, wrong := escaped(text)
		if wrong != "" {
			return "", wrong
		}
		if n == 2 { // \ and a byte
			out = append(out, text[1])
		} else {
			out = utf8.AppendRune(out, r)
		}
		text = text[n:]
	}
	return string(out), ""
}

// escaped reads one escape: of a byte (n is 2), of a code unit, or of a pair of them.
func escaped(text string) (r rune, n int, wrong string) {
	if len(text) == 1 {
		return 0, 0, endsWithEscape
	}
	if text[1] != 'u' {
		return rune(text[1]), 2, ""
	}
	r, wrong = codeUnit(text)
	if wrong != "" || !utf16.IsSurrogate(r) {
		return r, 6, wrong
	}
	if rest := text[6:]; strings.HasPrefix(rest, `\u`) {
		if low, wrong := codeUnit(rest); wrong == "" {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12, ""
			}
		}
	}
	return utf8.RuneError, 6, ""
}

// codeUnit reads \u and four hexadecimal digits.
func codeUnit(text string) (r rune, wrong string) {
	for i := 2; i < 6; i++ {
		if i == len(text) {
			return 0, truncatedEscape
		}
		digit := hex(text[i])
		if digit < 0 {
			c, _ := utf8.DecodeRuneInString(text[i:])
			return 0, badEscape + string(c)
		}
		r = r<<4 | digit
	}
	return r, ""
}

func hex(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10
	}
	return -1
}

// pattern returns a word with wildcards in the form of Wildcard.Pattern, or what is
// wrong with an escape in it.
func pattern(word string) (out, wrong string) {
	var b strings.Builder
	b.Grow(len(word))
	for word != "" {
		if word[0] != '\\' {
			b.WriteByte(word[0])
			word = word[1:]
			continue
		}
		r, n, wrong := escaped(word)
		if wrong != "" {
			return "", wrong
		}
		switch {
		case r == '*' || r == '?' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case n == 2:
			b.WriteByte(word[1])
		default:
			b.WriteRune(r)
		}
		word = word[n:]
	}
	return b.String(), ""
}
