package doc

import (
	"bytes"
	"math"
	"strconv"
)

// Floats print in decimal form when the exponent of their first digit is at
// least lowExponent and below highExponent, otherwise with an exponent: what
// CouchDB's printer does.
const (
	lowExponent = -6
)

// exactDigits is how many decimal digits a float64 always tells apart: a
// decimal of no more digits, without superfluous zeros, is the shortest one
// for its float.
const exactDigits = 15

// number reads a number that starts with c. Integers of any size stay as they
// are; a number with a fraction or an exponent is a float64.
func (s *scanner) number(c byte) bool {
	start := s.pos
	i := start
	if c == '-' {
		i++
	}
	first := i
	for i < len(s.src) && isDigit(s.src[i]) {
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && s.src[first] == '0' {
		return false
	}
	if i >= len(s.src) || s.src[i] != '.' && s.src[i]|0x20 != 'e' {
		s.pos = i
		if c == '-' && digits == 1 && s.src[first] == '0' {
			s.flushTo(start)
			s.mark = first // -0 is 0
		}
		return true
	}
	fraction := i
	if s.src[i] == '.' {
		for i++; i < len(s.src) && isDigit(s.src[i]); i++ {
		}
		if i == fraction+1 {
			return false
		}
		if i >= len(s.src) || s.src[i]|0x20 != 'e' {
			s.pos = i
			return shortest(s.src[first:fraction], s.src[fraction+1:i]) || s.float(start)
		}
	}
	i++ // e
	if i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
		i++
	}
	exponent := i
	for i < len(s.src) && isDigit(s.src[i]) {
		i++
	}
	s.pos = i
	return i > exponent && s.float(start)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// shortest reports whether a number with these digits before and after the
// point is certainly written as AppendFloat writes it. It may say no to one
// that is.
func shortest(whole, fraction []byte) bool {
	last := len(fraction) - 1
	if len(whole)+len(fraction) > exactDigits {
		return false
	}
	if whole[0] != '0' {
		return fraction[last] != '0' || last == 0
	}
	if fraction[last] == '0' {
		return false // also 0.0, which may have a sign to lose
	}
	for i := range -lowExponent {
		if i <= last && fraction[i] != '0' {
			return true
		}
	}
	return false
}

// float replaces src[start:pos] by its canonical form. It fails when the
// number is too large for a float64.
func (s *scanner) float(start int) bool {
	f, err := strconv.ParseFloat(string(s.src[start:s.pos]), 64)
	if err != nil {
		return false
	}
	s.flushTo(start)
	s.mark = s.pos
	switch {
	case s.drop:
	case s.signs && f == 0 && math.Signbit(f):
		s.dst = append(s.dst, negativeZero...)
	default:
		s.dst = AppendFloat(s.dst, f)
	}
	return true
}

// negativeZero is the one float that CouchDB keeps otherwise than it prints it.
const negativeZero = "-0.0"

// StoredBody returns the body of an envelope as it is stored and answered:
// without the signs of zeros. It is body itself as a rule.
func StoredBody(body []byte) []byte {
	if !bytes.Contains(body, []byte(negativeZero)) {
		return body
	}
	stored, err := Canonical(nil, body)
	if err != nil {
		return body
	}
	return stored
}

// AppendFloat appends f as CouchDB prints it: the shortest digits that read
// back as f, always with a fraction or an exponent; both zeros are 0.0.
func AppendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, "0.0"...)
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		for _, c := range dst[start:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, ".0"...)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv writes at least two digits of the exponent.
	if n := len(dst); dst[n-2] == '0' && !isDigit(dst[n-3]) {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
