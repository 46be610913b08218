package collate

import (
	"encoding/binary"
	"slices"
	"sync"
	"unicode/utf8"
	"unsafe"
)

// Weights, and bytes of a sort key, as UTS #35 and ICU lay them out.
const (
	commonWeight = 0x0500
	commonBoth   = 0x05000500 // common secondary and tertiary weight
	tertiaryMask = 0x3f3f

	levelEnd = 0x01 // between the levels

	compressionLow, compressionHigh = 0x03, 0xff
)

// scratch is the memory of one call.
type scratch struct {
	ces       []uint64
	secondary []byte
	tertiary  []byte
	runes     []rune
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// AppendString appends the sort key of a string, without an end mark. It
// contains no zero byte.
func AppendString(dst []byte, s string) []byte {
	t := root()
	if isASCII(s) {
		return t.appendASCII(dst, s)
	}
	b, _ := scratches.Get().(*scratch) // nothing else is put there
	t.elements(b, s)
	dst = t.appendElements(dst, b)
	scratches.Put(b)
	return dst
}

func isASCII(s string) bool {
	const tops = 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		if binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), 8))&tops != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendASCII is appendElements for ASCII only: there each character has at
// most one element, every secondary weight is common, no tertiary has two
// bytes, no lead byte is compressed, and no contraction goes on with one.
func (t *table) appendASCII(dst []byte, s string) []byte {
	end := len(dst)
	dst = slices.Grow(dst, 4*len(s)+8)
	space := dst[:cap(dst)]
	count, marked := 0, byte(0)
	for i := range len(s) {
		a := &t.ascii[s[i]&127]
		binary.LittleEndian.PutUint32(space[end:], a.primary) // what is too much is overwritten
		end += int(a.n)
		count += int(a.used)
		marked |= a.tertiary
	}
	dst = append(space[:end], levelEnd)
	dst = secondary().flush(dst, count, 0)
	dst = append(dst, levelEnd)
	if marked == 0 {
		return tertiary().flush(dst, count, 0)
	}
	common := 0
	for i := range len(s) {
		a := &t.ascii[s[i]&127]
		if a.tertiary == 0 {
			common += int(a.used)
			continue
		}
		dst = tertiary().flush(dst, common, tertiaryMask)
		common = 0
		dst = append(dst, a.tertiary)
	}
	return tertiary().flush(dst, common, 0)
}

// elements fills b.ces with the collation elements of s.
func (t *table) elements(b *scratch, s string) {
	ces := b.ces[:0]
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		e := t.entry(r)
		switch {
		case e == 0:
			ces = t.appendHangul(ces, r)
		case e == unassigned:
			ces = append(ces, computed(r))
		case e&contextual == 0:
			ces = append(ces, t.ces[e>>5:e>>5+e&31]...)
		default:
			if nd := t.contractions[r]; nd != nil && i+n < len(s) {
				behind, _ := utf8.DecodeRuneInString(s[i+n:])
				if nd.next[behind] != nil || t.combining[behind] > 0xff {
					b.ces = t.contract(b, ces, s, i)
					return
				}
			}
			ces = t.appendOwn(ces, r, s[:i])
		}
		i += n
	}
	b.ces = ces
}

// computed returns the element of a character that ICU knows nothing of.
func computed(r rune) uint64 {
	x := uint32(r) + 1
	p := 2 + (x%18)*14
	x /= 18
	p |= (2 + (x % 254)) << 8
	x /= 254
	p |= (4 + (x % 251)) << 16
	p |= 0xfe << 24
	return uint64(p)<<32 | commonBoth
}

func (t *table) appendHangul(ces []uint64, r rune) []uint64 {
	if r < hangulFirst || r > hangulLast {
		return ces
	}
	x := int(r - hangulFirst)
	ces = append(ces, t.lead[x/(vowels*trails)]...)
	ces = append(ces, t.vowel[x%(vowels*trails)/trails]...)
	return append(ces, t.trail[x%trails]...)
}

// appendOwn appends the elements of one character behind the given text.
func (t *table) appendOwn(ces []uint64, r rune, before string) []uint64 {
	if m := t.prefixes[r]; m != nil && before != "" {
		p, _ := utf8.DecodeLastRuneInString(before)
		if x, ok := m[p]; ok {
			return append(ces, x...)
		}
	}
	return append(ces, t.own(r)...)
}

// appendElements appends the three levels of the sort key of b.ces.
func (t *table) appendElements(dst []byte, b *scratch) []byte {
	b.secondary, b.tertiary = b.secondary[:0], b.tertiary[:0]
	commonSecondary, commonTertiary := 0, 0
	var compressed uint32 // the primary whose lead byte was written last and can be left out
	for _, ce := range b.ces {
		if p := uint32(ce >> 32); p > 1 {
			dst, compressed = t.appendPrimary(dst, p, compressed)
		}
		lower := uint32(ce)
		switch s := lower >> 16; {
		case lower == 0:
			continue
		case s == commonWeight:
			commonSecondary++
		case s != 0:
			b.secondary = secondary().flush(b.secondary, commonSecondary, s)
			commonSecondary = 0
			b.secondary = appendWeight(b.secondary, s)
		}
		w := lower & tertiaryMask
		if w == commonWeight {
			commonTertiary++
			continue
		}
		b.tertiary = tertiary().flush(b.tertiary, commonTertiary, w)
		commonTertiary = 0
		if w > commonWeight {
			w += 0xc000
		}
		b.tertiary = appendWeight(b.tertiary, w)
	}
	b.secondary = secondary().flush(b.secondary, commonSecondary, 0)
	b.tertiary = tertiary().flush(b.tertiary, commonTertiary, 0)
	dst = append(dst, levelEnd)
	dst = append(dst, b.secondary...)
	dst = append(dst, levelEnd)
	return append(dst, b.tertiary...)
}

// appendPrimary writes a primary weight; the lead byte of a run of weights
// with the same compressible one is written once.
func (t *table) appendPrimary(dst []byte, p, compressed uint32) ([]byte, uint32) {
	first := byte(p >> 24)
	can := t.compressible[first]
	if !can || first != byte(compressed>>24) {
		switch {
		case compressed == 0:
		case p >= compressed:
			dst = append(dst, compressionHigh)
		case first > 2:
			dst = append(dst, compressionLow)
		}
		dst = append(dst, first)
		compressed = 0
		if can {
			compressed = p
		}
	}
	for shift := 16; shift >= 0; shift -= 8 {
		c := byte(p >> shift)
		if c == 0 {
			break
		}
		dst = append(dst, c)
	}
	return dst, compressed
}

func appendWeight(dst []byte, w uint32) []byte {
	dst = append(dst, byte(w>>8))
	if byte(w) != 0 {
		dst = append(dst, byte(w))
	}
	return dst
}

// level says how a level writes runs of common weights: up to run of them are
// one byte, counted from low up or from high down.
type level struct {
	low, middle, high byte
	run               int
}

func secondary() level { return level{low: 0x05, middle: 0x25, high: 0x45, run: 0x21} }

func tertiary() level { return level{low: 0x05, middle: 0x65, high: 0xc5, run: 0x61} }

// flush writes a run of n common weights that the weight next ends; 0 is the
// end of the level.
func (l level) flush(dst []byte, n int, next uint32) []byte {
	if n == 0 {
		return dst
	}
	n--
	for ; n >= l.run; n -= l.run {
		dst = append(dst, l.middle)
	}
	if next < commonWeight {
		return append(dst, l.low+byte(n))
	}
	return append(dst, l.high-byte(n))
}
