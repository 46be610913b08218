package reduce

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/cespare/xxhash/v2"
)

// distinct is _approx_count_distinct: HyperLogLog over the sort keys, so keys
// that are equal in a view count once. The error is about 2.3 %.
//
// Its state is the 2^precision registers, a byte each, or, when that is
// shorter, those that are not zero: three bytes each, in order, 11 bits of index
// and 6 of value at the end.
type distinct struct{}

const (
	precision = 11
	registers = 1 << precision
	maxValue  = 64 - precision + 1 // of a register
	entrySize = 3                  // of a register that is not zero
	valueBits = 6
	sparseMax = registers/entrySize - 1 // entries; more are longer than the registers
)

// Reduce implements Function.
func (distinct) Reduce(dst []byte, rows []Row) ([]byte, error) {
	var reg [registers]byte
	for i := range rows {
		h := xxhash.Sum64(rows[i].Sort)
		value := byte(bits.LeadingZeros64(h<<precision|1<<(precision-1)) + 1)
		at := &reg[h>>(64-precision)]
		*at = max(*at, value)
	}
	return appendRegisters(dst, &reg), nil
}

// Rereduce implements Function.
func (distinct) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	var reg [registers]byte
	for _, state := range states {
		if err := mergeRegisters(&reg, state); err != nil {
			return dst, err
		}
	}
	return appendRegisters(dst, &reg), nil
}

func appendRegisters(dst []byte, reg *[registers]byte) []byte {
	used := 0
	for _, v := range reg {
		if v != 0 {
			used++
		}
	}
	if used > sparseMax {
		return append(dst, reg[:]...)
	}
	for i, v := range reg {
		if v != 0 {
			entry := uint32(i)<<valueBits | uint32(v)
			dst = append(dst, byte(entry>>16), byte(entry>>8), byte(entry))
		}
	}
	return dst
}

func mergeRegisters(reg *[registers]byte, state []byte) error {
	if len(state) == registers {
		for i, v := range state {
			if v > maxValue {
				return errState()
			}
			reg[i] = max(reg[i], v)
		}
		return nil
	}
	if len(state)%entrySize != 0 || len(state) > sparseMax*entrySize {
		return errState()
	}
	for ; len(state) > 0; state = state[entrySize:] {
		entry := uint32(state[0])<<16 | uint32(binary.BigEndian.Uint16(state[1:]))
		i, v := entry>>valueBits, byte(entry&(1<<valueBits-1))
		if i >= registers || v > maxValue {
			return errState()
		}
		reg[i] = max(reg[i], v)
	}
	return nil
}

// Final implements Function.
func (distinct) Final(dst, state []byte) ([]byte, error) {
	var reg [registers]byte
	if err := mergeRegisters(&reg, state); err != nil {
		return dst, err
	}
	return strconv.AppendUint(dst, uint64(math.Round(estimate(&reg))), 10), nil
}

// estimate returns how many distinct keys there were: the improved raw
// estimator of Ertl, "New cardinality estimation algorithms for HyperLogLog
// sketches" (2017), which needs no table of corrections.
func estimate(reg *[registers]byte) float64 {
	var have [maxValue + 1]float64 // registers with that value
	for _, v := range reg {
		have[v]++
	}
	z := registers * tau(1-have[maxValue]/registers)
	for k := maxValue - 1; k > 0; k-- {
		z = (z + have[k]) / 2
	}
	z += registers * sigma(have[0]/registers)
	return registers * registers / (2 * math.Ln2) / z
}

// sigma and tau are the sums of section 2.3.2 there.
func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.0
	for before := -1.0; before != z; y *= 2 {
		before = z
		x *= x
		z += x * y
	}
	return z
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	z, y := 1-x, 1.0
	for before := -1.0; before != z; {
		before = z
		x = math.Sqrt(x)
		y /= 2
		z -= (1 - x) * (1 - x) * y
	}
	return z / 3
}
