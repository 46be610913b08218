package syntax

import (
	"math"
	"strconv"
	"strings"
)

// number reads a text as Java's Double does, with control characters and spaces
// around it: a sign, then NaN, Infinity, decimal digits with fraction and exponent,
// or hexadecimal digits with a binary exponent; after digits a suffix f, F, d or D.
func number(text string) (v float64, ok bool) {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	body := strings.TrimLeft(text, "+-")
	if body == "" || len(text)-len(body) > 1 {
		return 0, false
	}
	negative := text[0] == '-'
	switch body {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		v = math.Inf(1)
	default:
		if strings.IndexByte("fFdD", body[len(body)-1]) >= 0 {
			body = body[:len(body)-1]
		}
		if !decimal(body) && !hexadecimal(body) {
			return 0, false
		}
		v, _ = strconv.ParseFloat(body, 64) // too large a number is infinite
	}
	if negative {
		v = -v
	}
	return v, true
}

// decimal reports whether s is digits, with a fraction or an exponent or both.
func decimal(s string) bool {
	whole, s := digits(s, false)
	fraction := 0
	if strings.HasPrefix(s, ".") {
		fraction, s = digits(s[1:], false)
	}
	return whole+fraction > 0 && (s == "" || exponent(s, "eE"))
}

// hexadecimal reports whether s is 0x, hexadecimal digits and a binary exponent.
func hexadecimal(s string) bool {
	if len(s) < 2 || s[0] != '0' || s[1]|0x20 != 'x' {
		return false
	}
	whole, s := digits(s[2:], true)
	fraction := 0
	if strings.HasPrefix(s, ".") {
		fraction, s = digits(s[1:], true)
	}
	return whole+fraction > 0 && exponent(s, "pP")
}

// exponent reports whether s is one of the letters, perhaps a sign, and digits.
func exponent(s, letters string) bool {
	if s == "" || strings.IndexByte(letters, s[0]) < 0 {
		return false
	}
	s = s[1:]
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	n, rest := digits(s, false)
	return n > 0 && rest == ""
}

// digits counts the digits that s begins with, and returns what follows them.
func digits(s string, hexadecimal bool) (n int, rest string) {
	for n < len(s) && ('0' <= s[n] && s[n] <= '9' || hexadecimal && hex(s[n]) >= 0) {
		n++
	}
	return n, s[n:]
}

// plain reports whether s is digits, and perhaps a dot and more digits: how boosts,
// edits and slops are written.
func plain(s string) bool {
	n, rest := digits(s, false)
	if n == 0 || rest == "" {
		return n > 0
	}
	if rest[0] != '.' {
		return false
	}
	n, rest = digits(rest[1:], false)
	return n > 0 && rest == ""
}

// factor reads a boost.
func factor(s string) float32 {
	v, _ := strconv.ParseFloat(s, 32)
	return factorOf(v)
}

// factorOf returns the boost next to v; none is infinite.
func factorOf(v float64) float32 { return float32(min(v, math.MaxFloat32)) }

// slop reads how many moves a phrase allows; a fraction is cut off. None is none.
func slop(s string) int {
	v, _ := strconv.ParseFloat(s, 32)
	return int(min(v, math.MaxInt32))
}

// maxEdits is how many edits a fuzzy word may be away.
const maxEdits = 2

// edits returns how many edits a fuzzy word of that many characters may be away: s is
// their number, or below 1 how similar the words have to be, in single precision as
// Lucene reckons. It is not ok for a number of edits with a fraction.
func edits(s string, characters int) (n int, ok bool) {
	if s == "" {
		return maxEdits, true
	}
	wide, _ := strconv.ParseFloat(s, 32)
	v := float32(wide)
	switch {
	case v >= 1:
		return int(min(v, maxEdits)), float64(v) == math.Trunc(float64(v))
	case v == 0:
		return 0, true
	}
	return int(min((1-float64(v))*float64(characters), maxEdits)), true
}
