package query

import (
	"bytes"
	"cmp"
	"strconv"
)

// fastDigits is how many digits of any value fit into 64 bits.
const fastDigits = 19

// numeral is the value of a JSON number: an integer of any size is exact, any other
// number is a double.
type numeral struct {
	double float64 // the nearest; beyond all of them infinity
	digits []byte  // text of an integer that is no double; otherwise nil
}

// number returns the value of a canonical JSON number.
func number(text []byte) numeral {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	if n := len(text) - i; n > 0 && n <= fastDigits {
		var u uint64
		for ; i < len(text); i++ {
			c := text[i] - '0'
			if c > 9 {
				break
			}
			u = u*10 + uint64(c)
		}
		if i == len(text) {
			v := numeral{double: float64(u)}
			if uint64(v.double) != u {
				v.digits = text
			}
			if negative {
				v.double = -v.double
			}
			return v
		}
	}
	f, _ := strconv.ParseFloat(string(text), 64) // out of range: infinity
	v := numeral{double: f}
	if len(text) > fastDigits && isInteger(text) && string(appendInteger(nil, f)) != string(text) {
		v.digits = text
	}
	return v
}

// appendInteger appends all digits of a double without fraction.
func appendInteger(dst []byte, f float64) []byte { return strconv.AppendFloat(dst, f, 'f', 0, 64) }

// compareNumbers orders numbers by their exact values.
func compareNumbers(a, b numeral) int {
	if c := cmp.Compare(a.double, b.double); c != 0 || a.digits == nil && b.digits == nil {
		return c // rounding keeps the order
	}
	if a.digits == nil {
		a.digits = appendInteger(nil, a.double)
	} else if b.digits == nil {
		b.digits = appendInteger(nil, b.double)
	}
	if a.digits[0] == '-' { // as b is
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(len(a.digits), len(b.digits)), bytes.Compare(a.digits, b.digits))
}

// isInteger reports whether a value is a number without fraction and exponent.
func isInteger(text []byte) bool {
	if kindOf(text) != kindNumber {
		return false
	}
	if text[0] == '-' {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(text) > 0
}
