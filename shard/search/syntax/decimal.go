package syntax

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"divan/storage/fault"
)

// Decimal reads a word or a bound of Nouveau for a numeric field, as Java's DecimalFormat
// does: a minus sign, digits with separators of groups between them, a fraction, and an
// exponent behind an E. What follows the number does not count. The locale says which
// separators: a language, perhaps with a country behind it, which is not looked at; an
// unknown or empty one is English. An error is a *fault.Error: it begins with no number.
func Decimal(text, locale string) (float64, error) {
	group, point := separators(locale)
	plain := make([]byte, 0, len(text))
	rest, negative := strings.CutPrefix(text, "-")
	if negative {
		plain = append(plain, '-')
	}
	plain, rest, whole := appendDigits(plain, rest, group)
	fraction := 0
	if after, ok := strings.CutPrefix(rest, string(point)); ok {
		plain, rest, fraction = appendDigits(append(plain, '.'), after, "")
	}
	if whole+fraction == 0 {
		return 0, fault.New(fault.BadRequest, `Could not parse text "`+text+`" using java.text.DecimalFormat`)
	}
	if after, ok := strings.CutPrefix(rest, "E"); ok {
		sign := ""
		if after, ok = strings.CutPrefix(after, "-"); ok {
			sign = "-"
		}
		if n, _ := digits(after, false); n > 0 {
			plain = append(append(append(plain, 'e'), sign...), after[:n]...)
		}
	}
	v, _ := strconv.ParseFloat(string(plain), 64) // too large a number is infinite
	return v, nil
}

// appendDigits copies the digits that s begins with, over separators that stand between
// two of them, and counts them.
func appendDigits(dst []byte, s, groups string) (out []byte, rest string, count int) {
	for s != "" {
		if '0' <= s[0] && s[0] <= '9' {
			dst, s, count = append(dst, s[0]), s[1:], count+1
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		if count == 0 || !strings.ContainsRune(groups, r) || n == len(s) || s[n] < '0' || '9' < s[n] {
			break
		}
		s = s[n:]
	}
	return dst, s, count
}

// separators returns what may stand between groups of digits in a language, and what
// before a fraction.
func separators(locale string) (groups string, point byte) {
	language, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(locale), "_", "-"), "-")
	switch language {
	case "de", "es", "it", "nl", "pt", "id", "tr", "da", "el", "hr", "sl", "sr", "ro", "ca", "eu", "gl", "is", "vi":
		return ".", ','
	case "fr", "ru", "pl", "cs", "sk", "uk", "bg", "fi", "sv", "no", "nb", "nn", "hu", "lt", "lv", "et", "be", "hy":
		return " \u00a0\u202f", ',' // Java has one of the wide spaces, and people type a common one
	}
	return ",", '.'
}
