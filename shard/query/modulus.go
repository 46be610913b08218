package query

import (
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
)

// Limits of divisors.
const (
	// maxDivisor is how many digits one has; a division by that many takes a microsecond.
	maxDivisor = 4096
	// chunkDigits is how many digits of an integer are divided at once.
	chunkDigits = 18
	// chunkCost and wordCost are the costs of dividing so many digits: one fixed, one
	// for each word of the divisor.
	chunkCost = 100
	wordCost  = 4
)

// modulus is the argument of $mod, two integers of any size.
type modulus struct {
	divisor   uint64   // without its sign
	large     *big.Int // the divisor when it has more than 64 bits
	remainder []byte   // as it is written
}

// newMod returns the node of a $mod.
func newMod(arg []byte) (*node, error) {
	var parts [2][]byte
	n := 0
	if kindOf(arg) == kindArray {
		for e := (elements{text: arg}); e.next(); n++ {
			if n == len(parts) || !isInteger(e.value) {
				return nil, badArg("$mod", arg)
			}
			parts[n] = e.value
		}
	}
	if n != len(parts) || string(parts[0]) == "0" || string(parts[0]) == "-0" {
		return nil, badArg("$mod", arg)
	}
	_, digits := sign(parts[0])
	if len(digits) > maxDivisor {
		return nil, invalid("bad_arg", fmt.Sprintf("Bad argument for operator $mod: the divisor has more than %d digits", maxDivisor))
	}
	m := modulus{remainder: parts[1]}
	var err error
	if m.divisor, err = strconv.ParseUint(string(digits), 10, 64); err != nil {
		m.large, _ = new(big.Int).SetString(string(digits), 10)
	}
	return &node{op: opMod, arg: literal{text: arg}, mod: m}, nil
}

// sign splits the text of an integer.
func sign(text []byte) (negative bool, digits []byte) {
	if text[0] == '-' {
		return true, text[1:]
	}
	return false, text
}

// cost returns the cost of dividing a value.
func (m *modulus) cost(v []byte) int {
	if m.large == nil {
		return perByte * len(v)
	}
	return perByte*len(v) + len(v)/chunkDigits*(chunkCost+wordCost*len(m.large.Bits()))
}

// remains reports whether a value is an integer that leaves that remainder, which has
// the sign of the integer.
func (m *modulus) remains(v []byte) bool {
	if !isInteger(v) {
		return false
	}
	negative, digits := sign(v)
	wantNegative, want := sign(m.remainder)
	var short [20]byte
	left := short[:0]
	if m.large == nil {
		left = strconv.AppendUint(left, rest(digits, m.divisor), 10)
	} else {
		left = m.restLarge(digits)
	}
	return string(left) == string(want) && (negative == wantNegative || string(left) == "0")
}

// rest is the remainder of an integer of any size.
func rest(digits []byte, divisor uint64) (r uint64) {
	for _, c := range digits {
		hi, lo := bits.Mul64(r, 10)
		lo, carry := bits.Add64(lo, uint64(c-'0'), 0)
		_, r = bits.Div64(hi+carry, lo, divisor) // hi+carry < divisor, as r < divisor
	}
	return r
}

// restLarge is rest with a divisor of more than 64 bits, as text.
func (m *modulus) restLarge(digits []byte) []byte {
	var r, chunk, quotient big.Int
	for len(digits) > 0 {
		n := min(len(digits), chunkDigits)
		value, scale := uint64(0), uint64(1)
		for _, c := range digits[:n] {
			value, scale = value*10+uint64(c-'0'), scale*10
		}
		digits = digits[n:]
		r.Mul(&r, chunk.SetUint64(scale))
		r.Add(&r, chunk.SetUint64(value))
		quotient.QuoRem(&r, m.large, &r)
	}
	return r.Append(nil, 10)
}
