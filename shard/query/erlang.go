package query

import (
	"math"
	"strconv"

	"divan/storage/doc"
)

// maxTerm is how much of a term a refusal shows, in bytes.
const maxTerm = 4096

// term prints a canonical value as Erlang prints the term that CouchDB parses
// it into: strings as their bytes, objects as tuples of lists of pairs. A long
// one is cut off.
func term(value []byte) string { return Term(value, false) }

// Term is the text of a canonical value in CouchDB's refusals: as Erlang prints
// the term, cut off when it is long. With readable, strings of printable
// characters are shown as such.
func Term(value []byte, readable bool) string {
	out := string(appendTerm(nil, value, readable))
	if len(out) > maxTerm {
		out = out[:maxTerm] + "..."
	}
	return out
}

func appendTerm(dst, value []byte, readable bool) []byte {
	if len(dst) > maxTerm {
		return dst
	}
	switch kindOf(value) {
	case kindString:
		return appendBytes(dst, value, readable)
	case kindNumber:
		if isInteger(value) {
			return append(dst, value...)
		}
		return appendFloat(dst, number(value).double)
	case kindArray:
		dst = append(dst, '[')
		first := true
		for e := (elements{text: value}); e.next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = appendTerm(dst, e.value, readable)
		}
		return append(dst, ']')
	case kindObject:
		dst = append(dst, "{["...)
		first := true
		for m := (members{text: value}); m.next(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = appendBytes(append(dst, '{'), m.name, readable)
			dst = appendTerm(append(dst, ','), m.value, readable)
			dst = append(dst, '}')
		}
		return append(dst, "]}"...)
	default:
		return append(dst, value...)
	}
}

// appendBytes prints a string as a binary.
func appendBytes(dst, value []byte, readable bool) []byte {
	s, _ := doc.Unquote(value) // canonical
	dst = append(dst, "<<"...)
	if readable && s != "" && printable(s) {
		dst = append(dst, '"')
		for i := range len(s) {
			if s[i] == '"' || s[i] == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, s[i])
		}
		return append(dst, "\">>"...)
	}
	for i := range len(s) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(s[i]), 10)
		if len(dst) > maxTerm {
			break
		}
	}
	return append(dst, ">>"...)
}

// printable reports whether a string is of printable ASCII characters.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// appendFloat prints the shortest digits that give the number back, in plain
// notation unless an exponent is shorter.
func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, "0.0"...)
	}
	if f < 0 {
		dst = append(dst, '-')
		f = -f
	}
	digits, place := splitFloat(strconv.AppendFloat(nil, f, 'e', -1, 64))
	return appendDigits(dst, digits, place, f)
}

// splitFloat takes apart what strconv writes: the digits, and the place of the
// point among them.
func splitFloat(sci []byte) (digits []byte, place int) {
	for i, c := range sci {
		switch c {
		case '.':
		case 'e':
			e, _ := strconv.Atoi(string(sci[i+1:]))
			return digits, e + 1
		default:
			digits = append(digits, c)
		}
	}
	return digits, 1
}

func appendDigits(dst, digits []byte, place int, f float64) []byte {
	n := len(digits)
	exponent := strconv.Itoa(place - 1)
	cost := len(exponent) + 2
	if n == 1 {
		cost++
	}
	switch {
	case place > 0 && place < n:
		dst = append(append(dst, digits[:place]...), '.')
		return append(dst, digits[place:]...)
	case place == 0 || place < 0 && 2-place <= cost:
		dst = append(dst, "0."...)
		for range -place {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	case place > 0 && place-n+2 <= cost && f < math.Exp2(53):
		dst = append(dst, digits...)
		for range place - n {
			dst = append(dst, '0')
		}
		return append(dst, ".0"...)
	}
	dst = append(append(dst, digits[0]), '.')
	if n == 1 {
		dst = append(dst, '0')
	}
	dst = append(dst, digits[1:]...)
	return append(append(dst, 'e'), exponent...)
}
