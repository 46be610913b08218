package query

import (
	"math/bits"
	"strconv"
)

// exactDigits is how many digits fit into 64 bits whatever they are.
const exactDigits = 19

// number returns the value of a JSON number as a double.
func number(text []byte) float64 {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	if n := len(text) - i; n > 0 && n <= exactDigits {
		var u uint64
		for ; i < len(text); i++ {
			c := text[i] - '0'
			if c > 9 {
				break
			}
			u = u*10 + uint64(c)
		}
		if i == len(text) {
			if negative {
				return -float64(u)
			}
			return float64(u)
		}
	}
	f, _ := strconv.ParseFloat(string(text), 64) // out of range: infinity, as in collate
	return f
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

// remains reports whether an integer of any size leaves that remainder:
// mod is the divisor and the remainder, which has the sign of the integer.
func remains(text []byte, mod [2]int64) bool {
	if !isInteger(text) {
		return false
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	d := uint64(mod[0])
	if mod[0] < 0 {
		d = -d
	}
	var r uint64
	for _, c := range text {
		hi, lo := bits.Mul64(r, 10)
		lo, carry := bits.Add64(lo, uint64(c-'0'), 0)
		_, r = bits.Div64(hi+carry, lo, d) // hi+carry < d, as r < d
	}
	want := uint64(mod[1])
	if mod[1] < 0 {
		want = -want
	}
	return r == want && (r == 0 || negative == (mod[1] < 0))
}
