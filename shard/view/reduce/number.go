package reduce

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
)

// number is an exact sum of integers and floats.
//
// Integers add up to 128 bits, and what goes beyond to big. Floats add up to a
// list of parts whose exact sum is theirs, and of which none overlaps another
// (Shewchuk, "Adaptive precision floating-point arithmetic", 1997): there are at
// most about forty, and two as a rule. Floats so large that their sum might not
// be a float are kept apart, divided by a power of two.
//
// As in Erlang a sum is an integer as long as no float took part. The float is
// the one nearest to the exact sum, so it does not depend on the order.
type number struct {
	hi    int64 // with lo: the sum of integers, in two's complement
	lo    uint64
	big   *big.Int  // a further part of that sum; nil is 0
	float bool      // a float took part
	over  bool      // a number beyond the floats took part, or came out of a square
	parts []float64 // of floats below hugeFrom
	huge  []float64 // of the others, times 2^-hugeShift
}

const (
	hugeShift = 128
	hugeFrom  = 0x1p960 // parts stay floats for 2^63 of them, and those of huge as well
)

func (n *number) add(s *scalar) {
	switch {
	case s.float:
		n.addFloat(s.f)
	case s.big != nil:
		n.addBig(s.big)
	default:
		n.addInt(s.i)
	}
}

// addSquare adds the square of a number. That of a float is rounded, as in
// Erlang.
func (n *number) addSquare(s *scalar) {
	switch {
	case s.float:
		n.addFloat(float64(s.f * s.f))
	case s.big != nil:
		n.addBig(new(big.Int).Mul(s.big, s.big))
	default:
		u := uint64(s.i)
		if s.i < 0 {
			u = -u
		}
		hi, lo := bits.Mul64(u, u) // at most 2^126
		n.add128(int64(hi), lo)
	}
}

func (n *number) addInt(v int64) { n.add128(v>>63, uint64(v)) }

func (n *number) add128(hi int64, lo uint64) {
	low, carry := bits.Add64(n.lo, lo, 0)
	high := n.hi + hi + int64(carry)
	if (n.hi^high)&(hi^high) < 0 { // beyond 128 bits
		n.addBig(big128(n.hi, n.lo))
		n.hi, n.lo = hi, lo
		return
	}
	n.hi, n.lo = high, low
}

func big128(hi int64, lo uint64) *big.Int {
	v := new(big.Int).Lsh(big.NewInt(hi), 64)
	return v.Add(v, new(big.Int).SetUint64(lo))
}

func (n *number) addBig(v *big.Int) {
	if n.big == nil {
		n.big = new(big.Int)
	}
	n.big.Add(n.big, v)
}

func (n *number) addFloat(f float64) {
	n.float = true
	switch a := math.Abs(f); {
	case f == 0:
	case a < hugeFrom:
		n.parts = addPart(n.parts, f)
	case math.IsInf(f, 0):
		n.over = true
	default:
		n.huge = addPart(n.huge, f*0x1p-128)
	}
}

// addPart adds x to the sum of parts, which are in ascending order of
// magnitude.
func addPart(parts []float64, x float64) []float64 {
	kept := 0
	for _, y := range parts {
		if math.Abs(x) < math.Abs(y) {
			x, y = y, x
		}
		sum := x + y
		if rest := y - (sum - x); rest != 0 {
			parts[kept] = rest
			kept++
		}
		x = sum
	}
	if x == 0 {
		return parts[:kept]
	}
	return append(parts[:kept], x)
}

// merge adds another sum.
func (n *number) merge(o *number) {
	n.add128(o.hi, o.lo)
	if o.big != nil {
		n.addBig(o.big)
	}
	n.float, n.over = n.float || o.float, n.over || o.over
	for _, p := range o.parts {
		n.parts = addPart(n.parts, p)
	}
	for _, p := range o.huge {
		n.huge = addPart(n.huge, p)
	}
}

func (n *number) appendJSON(dst []byte) []byte {
	s := n.scalar()
	return s.appendJSON(dst)
}

// scalar returns the sum as one number.
func (n *number) scalar() scalar {
	switch {
	case n.over:
		return scalar{f: math.Inf(1), float: true}
	case !n.float && n.big == nil && n.hi == int64(n.lo)>>63:
		return scalar{i: int64(n.lo)}
	case !n.float:
		return scalar{big: n.integer()}
	case len(n.parts) <= 1 && len(n.huge) == 0 && n.hi == 0 && n.lo == 0 && n.big == nil:
		if len(n.parts) == 0 {
			return scalar{float: true}
		}
		return scalar{f: n.parts[0], float: true}
	}
	if n.big == nil && len(n.huge) == 0 && n.hi == int64(n.lo)>>63 {
		var buf [8]float64
		parts := append(buf[:0], n.parts...)
		const low = 1<<32 - 1 // both halves of an integer are floats
		parts = addPart(parts, float64(int64(n.lo)&low))
		return scalar{f: round(addPart(parts, float64(int64(n.lo)&^low))), float: true}
	}
	return scalar{f: n.nearest(), float: true}
}

// round returns the float nearest to the sum of parts, to the even one of two. They
// are below hugeFrom.
func round(parts []float64) float64 {
	i := len(parts) - 1
	if i < 0 {
		return 0
	}
	sum, rest := parts[i], 0.0
	for i > 0 && rest == 0 {
		i--
		x, y := sum, parts[i]
		sum = x + y
		rest = y - (sum - x)
	}
	// rest is less than half of the last digit of sum or just half of it. Then the parts
	// below say to which side: sum was rounded to even as if there were none.
	if i > 0 && (rest < 0) == (parts[i-1] < 0) && rest != 0 {
		if up := sum + 2*rest; up-sum == 2*rest {
			return up
		}
	}
	return sum
}

// integer returns the sum of the integers.
func (n *number) integer() *big.Int {
	v := big128(n.hi, n.lo)
	if n.big != nil {
		v.Add(v, n.big)
	}
	return v
}

// nearest returns the float nearest to the sum: infinity beyond the floats.
func (n *number) nearest() float64 {
	whole := n.integer()
	// Enough bits for every float, from the largest to the smallest, and for
	// the carries of 2^64 of them.
	precision := uint(2400 + whole.BitLen())
	sum := new(big.Float).SetPrec(precision).SetInt(whole)
	part := new(big.Float).SetPrec(precision)
	for _, p := range n.huge {
		part.SetFloat64(p)
		part.SetMantExp(part, hugeShift)
		sum.Add(sum, part)
	}
	for _, p := range n.parts {
		sum.Add(sum, part.SetFloat64(p))
	}
	f, _ := sum.Float64()
	return f
}

// What a number in a state is made of.
const (
	numberFloat byte = 1 << iota
	numberOver
	numberWide // 128 bits; else a varint
	numberBig
	numberParts
	numberHuge
)

func (n *number) appendState(dst []byte) []byte {
	var form byte
	set := func(on bool, bit byte) {
		if on {
			form |= bit
		}
	}
	set(n.float, numberFloat)
	set(n.over, numberOver)
	set(n.hi != int64(n.lo)>>63, numberWide)
	set(n.big != nil, numberBig)
	set(len(n.parts) > 0, numberParts)
	set(len(n.huge) > 0, numberHuge)
	dst = append(dst, form)
	if form&numberWide != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n.hi))
		dst = binary.BigEndian.AppendUint64(dst, n.lo)
	} else {
		dst = binary.AppendVarint(dst, int64(n.lo))
	}
	if n.big != nil {
		dst = appendBig(dst, n.big)
	}
	if form&numberParts != 0 {
		dst = appendParts(dst, n.parts)
	}
	if form&numberHuge != 0 {
		dst = appendParts(dst, n.huge)
	}
	return dst
}

func appendParts(dst []byte, parts []float64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(parts)))
	for _, p := range parts {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(p))
	}
	return dst
}

// mergeState adds the sum that follows in a state.
func (n *number) mergeState(r *reader) {
	form := r.byte()
	n.float = n.float || form&numberFloat != 0
	n.over = n.over || form&numberOver != 0
	if form&numberWide != 0 {
		hi := int64(r.uint64())
		n.add128(hi, r.uint64())
	} else {
		n.addInt(r.varint())
	}
	if form&numberBig != 0 {
		if s := r.scalar(); s.big != nil {
			n.addBig(s.big)
		} else {
			r.fail()
		}
	}
	if form&numberParts != 0 {
		n.parts = r.parts(n.parts)
	}
	if form&numberHuge != 0 {
		n.huge = r.parts(n.huge)
	}
}

// parts adds the parts that follow.
func (r *reader) parts(to []float64) []float64 {
	count := r.count()
	if to == nil {
		to = make([]float64, 0, count+1)
	}
	for range count {
		p := r.float()
		if math.Abs(p) >= 0x1p1000 {
			r.fail()
			return to
		}
		to = addPart(to, p)
	}
	return to
}
