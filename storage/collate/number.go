package collate

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// Numbers have the order of their values: integers of any size are exact, other
// numbers are doubles. A key begins with the double next to the number, towards
// zero, as eight bytes. From 2^53 on integers lie between the doubles, and keys go
// on:
//
//   - below 2^1024 with the bits of the integer behind those of the double, from
//     the highest on, seven in a byte whose first bit is set, without zeros at the
//     end, and a zero byte;
//   - from there on, where the double is infinity, with the count of digits as four
//     bytes, and the digits.
//
// Of negative numbers every byte is inverted. No key is the beginning of another.

const (
	// fastDigits is how many digits an integer may have to fit into 64 bits.
	fastDigits = 19
	// mantissa is how many bits of an integer a double holds.
	mantissa = 53
	// doubleDigits is how many digits the largest double has.
	doubleDigits = 309
	// groupBits is how many bits a byte behind the double holds.
	groupBits = 7
	// more marks a byte with bits.
	more = 1 << groupBits

	exponentOf1   = 1023 // as doubles have it, in the bits from mantissa-1 on
	highestDouble = 1023 // exponent of doubles

	// bitsOfFirst is the first double behind which integers lie: 2^53.
	bitsOfFirst = (exponentOf1 + mantissa) << (mantissa - 1)
	// bitsOfInfinity stands for integers beyond the doubles.
	bitsOfInfinity = (exponentOf1 + highestDouble + 1) << (mantissa - 1)
)

func appendNumber(dst, value []byte) ([]byte, error) {
	end := len(value)
	for end > 0 && value[end-1] <= ' ' {
		end--
	}
	digits, negative := value[:end], false
	if end > 0 && value[0] == '-' {
		digits, negative = value[1:end], true
	}
	start := len(dst)
	if n := len(digits); n > 0 && n <= fastDigits {
		if u, ok := integer(digits); ok {
			return finish(appendSmall(dst, u), start, negative && u != 0), nil
		}
	}
	if len(digits) > fastDigits && allDigits(digits) {
		return finish(appendLarge(dst, digits), start, negative), nil
	}
	f, err := strconv.ParseFloat(string(value[:end]), 64)
	if err != nil && !math.IsInf(f, 0) {
		return dst, err
	}
	b := math.Float64bits(math.Abs(f))
	dst = appendDouble(dst, b)
	switch {
	case b >= bitsOfInfinity:
		dst = append(dst, 0xff, 0xff, 0xff, 0xff) // beyond every integer
	case b >= bitsOfFirst:
		dst = append(dst, 0)
	}
	return finish(dst, start, f < 0), nil
}

// integer returns the value of at most fastDigits digits.
func integer(digits []byte) (u uint64, ok bool) {
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		u = u*10 + uint64(c)
	}
	return u, true
}

func allDigits(text []byte) bool {
	for _, c := range text {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// appendDouble appends the bits of a double that is not negative.
func appendDouble(dst []byte, b uint64) []byte { return binary.BigEndian.AppendUint64(dst, 1<<63|b) }

// finish ends the key of a number that starts at dst[start].
func finish(dst []byte, start int, negative bool) []byte {
	if negative {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

func appendSmall(dst []byte, u uint64) []byte {
	n := bits.Len64(u) - mantissa
	if n <= 0 {
		return appendDouble(dst, math.Float64bits(float64(u)))
	}
	dst = appendDouble(dst, math.Float64bits(float64(u>>n<<n)))
	for rest := u << (64 - n); rest != 0; rest <<= groupBits {
		dst = append(dst, more|byte(rest>>(64-groupBits)))
	}
	return append(dst, 0)
}

// appendLarge appends the key of an integer of more than fastDigits digits.
func appendLarge(dst, digits []byte) []byte {
	for len(digits) > 1 && digits[0] == '0' { // JSON has no such numbers
		digits = digits[1:]
	}
	if len(digits) <= doubleDigits {
		var v, top big.Int
		v.SetString(string(digits), 10)
		n := v.BitLen() - mantissa
		if n <= 64-mantissa {
			return appendSmall(dst, v.Uint64())
		}
		if n <= 1024-mantissa {
			f, _ := new(big.Float).SetInt(top.Rsh(&v, uint(n))).Float64()
			dst = appendDouble(dst, math.Float64bits(math.Ldexp(f, n)))
			return append(appendBits(dst, &v, n), 0)
		}
	}
	dst = appendDouble(dst, bitsOfInfinity)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(digits)))
	return append(dst, digits...)
}

// appendBits appends the lowest n bits of v, without zeros at the end.
func appendBits(dst []byte, v *big.Int, n int) []byte {
	last := int(v.TrailingZeroBits())
	for at := n; at > last; at -= groupBits {
		group := byte(more)
		for i := range groupBits {
			if at-1-i >= 0 {
				group |= byte(v.Bit(at-1-i)) << (groupBits - 1 - i)
			}
		}
		dst = append(dst, group)
	}
	return dst
}

// behindNumber returns the position behind the number whose double starts at
// key[i]; it may lie behind the end of a key that is cut off.
func behindNumber(key []byte, i int) int {
	if i+8 > len(key) {
		return i + 8
	}
	b := binary.BigEndian.Uint64(key[i:])
	invert := byte(0)
	if b>>63 == 0 {
		b, invert = ^b, 0xff
	}
	i += 8
	switch b &^= 1 << 63; {
	case b < bitsOfFirst:
		return i
	case b < bitsOfInfinity:
		for i < len(key) && (key[i]^invert)&more != 0 {
			i++
		}
		return i + 1
	}
	if i+4 > len(key) {
		return i + 4
	}
	n := binary.BigEndian.Uint32(key[i:])
	if invert != 0 {
		n = ^n
	}
	if i += 4; n == math.MaxUint32 {
		return i
	}
	return i + int(n)
}
