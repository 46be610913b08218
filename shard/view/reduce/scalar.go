package reduce

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"strconv"

	"divan/storage/doc"
)

// maxInteger is how many digits an integer may have. A JavaScript number is
// written with an exponent from 22 digits on.
const maxInteger = 400

// scalar is one JSON number: an integer, small or of any size, or a float.
type scalar struct {
	i     int64
	big   *big.Int // instead of i when that is too small
	f     float64  // instead of i when float
	float bool
}

// parseScalar reads a JSON number; false when the value, which is JSON, is none.
func parseScalar(text []byte) (scalar, bool) {
	i, negative := 0, false
	if len(text) > 0 && text[0] == '-' {
		i, negative = 1, true
	}
	if n := len(text) - i; n == 0 || n > 18 {
		return parseLong(text)
	}
	var v int64
	first, point := i, 0
	for ; i < len(text); i++ {
		switch c := text[i] - '0'; {
		case c <= 9:
			v = v*10 + int64(c)
		case text[i] == '.' && point == 0 && i > first && i < len(text)-1:
			point = i + 1
		default:
			return parseLong(text)
		}
	}
	if point == 0 {
		if negative {
			v = -v
		}
		return scalar{i: v}, true
	}
	if v >= 1<<53 {
		return parseLong(text)
	}
	// Both are exact as floats, so the quotient is the float nearest to text.
	f := float64(v) / tenTo(len(text)-point)
	if negative {
		f = -f
	}
	return scalar{f: f, float: true}, true
}

// tenTo returns a power of ten that is exactly a float: n is less than 23.
func tenTo(n int) float64 {
	f := 1.0
	for range n {
		f *= 10
	}
	return f
}

// parseLong is parseScalar for floats, for integers that may need more than 64
// bits, and for what is no number.
func parseLong(text []byte) (scalar, bool) {
	if !isNumber(text) {
		return scalar{}, false
	}
	if bytes.ContainsAny(text, ".eE") || len(text) > maxInteger {
		f, err := strconv.ParseFloat(string(text), 64)
		return scalar{f: f, float: true}, err == nil || math.IsInf(f, 0)
	}
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return scalar{i: v}, true
	}
	v, ok := new(big.Int).SetString(string(text), 10)
	return scalar{big: v}, ok
}

// isNumber reports whether a JSON value is a number.
func isNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || '0' <= text[0] && text[0] <= '9')
}

// compare orders scalars by their exact values.
func compare(a, b *scalar) int {
	switch {
	case a.float && b.float:
		return cmp.Compare(a.f, b.f)
	case a.big == nil && b.big == nil && !a.float && !b.float:
		return cmp.Compare(a.i, b.i)
	}
	return a.exact().Cmp(b.exact())
}

func (s *scalar) exact() *big.Float {
	switch {
	case s.float:
		return big.NewFloat(s.f)
	case s.big != nil:
		return new(big.Float).SetInt(s.big)
	}
	return new(big.Float).SetInt64(s.i)
}

// least keeps in s the lesser of s and o, greatest the greater. Of an integer
// and the float that equals it they keep the integer, in any order.
func (s *scalar) least(o *scalar) {
	if c := compare(o, s); c < 0 || c == 0 && s.float {
		*s = *o
	}
}

func (s *scalar) greatest(o *scalar) {
	if c := compare(o, s); c > 0 || c == 0 && s.float {
		*s = *o
	}
}

func (s *scalar) appendJSON(dst []byte) []byte {
	switch {
	case s.float:
		return appendFloat(dst, s.f)
	case s.big != nil:
		return s.big.Append(dst, 10)
	}
	return strconv.AppendInt(dst, s.i, 10)
}

// appendFloat appends a float as CouchDB prints it, null when JSON has no
// number for it.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return doc.AppendFloat(dst, f)
}

// The forms of a scalar in a state.
const (
	scalarInt byte = iota
	scalarFloat
	scalarPositive // an integer of any size: its magnitude
	scalarNegative
)

func (s *scalar) appendState(dst []byte) []byte {
	switch {
	case s.float:
		return binary.BigEndian.AppendUint64(append(dst, scalarFloat), math.Float64bits(s.f))
	case s.big != nil:
		return appendBig(dst, s.big)
	}
	return binary.AppendVarint(append(dst, scalarInt), s.i)
}

func appendBig(dst []byte, v *big.Int) []byte {
	form := scalarPositive
	if v.Sign() < 0 {
		form = scalarNegative
	}
	return appendText(append(dst, form), v.Bytes())
}

func (r *reader) scalar() scalar {
	switch form := r.byte(); form {
	case scalarInt:
		return scalar{i: r.varint()}
	case scalarFloat:
		return scalar{f: r.float(), float: true}
	case scalarPositive, scalarNegative:
		v := new(big.Int).SetBytes(r.text())
		if form == scalarNegative {
			v.Neg(v)
		}
		return scalar{big: v}
	}
	r.fail()
	return scalar{}
}
