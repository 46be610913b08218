package doc

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// The tags of Erlang's external term format that JSON needs.
const (
	termVersion     = 131
	termNewFloat    = 'F'
	termSmallInt    = 'a'
	termInt         = 'b'
	termAtom        = 'd'
	termSmallTuple  = 'h'
	termNil         = 'j'
	termString      = 'k' // a list of bytes
	termList        = 'l'
	termBinary      = 'm'
	termSmallBig    = 'n'
	termLargeBig    = 'o'
	listHeader      = 5         // bytes of termList and its count
	longestTermText = 1<<16 - 1 // elements of a termString
	shortInteger    = 18        // digits that fit an int64 in any case
)

// termLevel is an open object or array.
type termLevel struct {
	start  int // of its list in dst
	count  int // elements begun
	object bool
}

// appendTerm appends a document's canonical JSON text as CouchDB holds it, in
// the external term format, in one pass and without a tree: the count of a list
// is filled in when the list ends. What it works with stays on the stack unless
// the document is large.
//
// No object has two members of one name. Text that is not canonical gives some term or other; nothing panics.
func appendTerm(dst, src []byte) []byte {
	var space [8]termLevel
	levels := space[:0]
	for pos := 0; pos < len(src); {
		begins := false // an element of the innermost object or array
		switch c := src[pos]; c {
		case '{', '[':
			if c == '{' {
				dst = append(dst, termSmallTuple, 1)
			}
			levels = append(levels, termLevel{start: len(dst), object: c == '{'})
			dst = append(dst, termList, 0, 0, 0, 0)
			pos++
			begins = pos < len(src) && src[pos] != '}' && src[pos] != ']'
		case '}', ']':
			pos++
			if last := len(levels) - 1; last >= 0 {
				dst = endList(dst, levels[last].start, levels[last].count)
				levels = levels[:last]
			}
		case ',':
			pos++
			begins = true
		default:
			dst, pos = appendTermScalar(dst, src, pos)
		}
		if !begins || len(levels) == 0 {
			continue
		}
		l := &levels[len(levels)-1]
		l.count++
		if l.object && pos < len(src) && src[pos] == '"' {
			dst = append(dst, termSmallTuple, 2)
			dst, pos = appendTermText(dst, src, pos)
			pos++ // the colon
		}
	}
	return dst
}

// endList ends a list whose header is dst[start:] and fills in its count. A
// list of nothing but bytes takes its short form.
func endList(dst []byte, start, count int) []byte {
	if count == 0 {
		return append(dst[:start], termNil)
	}
	elements := dst[start+listHeader:]
	if count <= longestTermText && len(elements) == 2*count && allBytes(elements) {
		dst[start] = termString
		binary.BigEndian.PutUint16(dst[start+1:], uint16(count))
		for i := range count {
			dst[start+3+i] = elements[2*i+1]
		}
		return dst[:start+3+count]
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(count))
	return append(dst, termNil)
}

// allBytes reports whether terms of two bytes on average are all integers of
// one byte.
func allBytes(terms []byte) bool {
	for i := 0; i < len(terms); i += 2 {
		if terms[i] != termSmallInt {
			return false
		}
	}
	return true
}

// appendTermScalar appends what is no object and no array at src[pos] and
// returns the place after it. A byte that begins nothing is skipped.
func appendTermScalar(dst, src []byte, pos int) (term []byte, next int) {
	switch src[pos] {
	case '"':
		return appendTermText(dst, src, pos)
	case 't':
		return appendTermAtom(dst, "true"), pos + len("true")
	case 'f':
		return appendTermAtom(dst, "false"), pos + len("false")
	case 'n':
		return appendTermAtom(dst, "null"), pos + len("null")
	}
	return appendTermNumber(dst, src, pos)
}

// appendTermText appends the string at src[pos], without its escapes.
func appendTermText(dst, src []byte, pos int) (term []byte, next int) {
	at := len(dst)
	dst = append(dst, termBinary, 0, 0, 0, 0)
	for i := pos + 1; ; {
		end := quoteOrEscape(src, i)
		dst = append(dst, src[i:end]...)
		next = end + 1
		if end >= len(src) || src[end] == '"' {
			break
		}
		var r rune
		if r, i = unescape(src, end); i < 0 {
			break
		}
		dst = utf8.AppendRune(dst, r)
	}
	binary.BigEndian.PutUint32(dst[at+1:], uint32(len(dst)-at-listHeader))
	return dst, next
}

// quoteOrEscape returns the place of the first quote or backslash at or after
// i, len(src) when there is none.
func quoteOrEscape(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		x := binary.LittleEndian.Uint64(src[i:])
		quote, escape := x^allQuotes, x^allEscapes
		if found := ((quote-lowBits)&^quote | (escape-lowBits)&^escape) & highBits; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(src); i++ {
		if src[i] == '"' || src[i] == '\\' {
			return i
		}
	}
	return i
}

func appendTermNumber(dst, src []byte, pos int) (term []byte, next int) {
	next, float := pos+1, false
	for ; next < len(src); next++ {
		if c := src[next]; c == '.' || c == 'e' || c == '+' {
			float = true
		} else if !isDigit(c) && c != '-' {
			break
		}
	}
	text := src[pos:next]
	switch {
	case float:
		f, _ := strconv.ParseFloat(string(text), 64)
		dst = binary.BigEndian.AppendUint64(append(dst, termNewFloat), math.Float64bits(f))
	case len(text) <= shortInteger:
		n, _ := strconv.ParseInt(string(text), 10, 64)
		dst = appendTermInt(dst, n)
	default:
		dst = appendTermBig(dst, bigInteger(text))
	}
	return dst, next
}

func appendTermAtom(dst []byte, name string) []byte {
	dst = append(dst, termAtom, 0, byte(len(name)))
	return append(dst, name...)
}

func appendTermBinary[T string | []byte](dst []byte, text T) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, termBinary), uint32(len(text)))
	return append(dst, text...)
}

func appendTermInt(dst []byte, n int64) []byte {
	switch {
	case n >= 0 && n <= math.MaxUint8:
		return append(dst, termSmallInt, byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return binary.BigEndian.AppendUint32(append(dst, termInt), uint32(n))
	}
	m := uint64(n)
	if n < 0 {
		m = -m
	}
	dst = append(dst, termSmallBig, byte((bits.Len64(m)+7)/8), byte(uint64(n)>>63))
	for ; m > 0; m >>= 8 {
		dst = append(dst, byte(m))
	}
	return dst
}

// appendTermBig appends an integer of any size.
func appendTermBig(dst []byte, n *big.Int) []byte {
	if n.IsInt64() {
		return appendTermInt(dst, n.Int64())
	}
	magnitude := n.Bytes()
	slices.Reverse(magnitude)
	if len(magnitude) <= math.MaxUint8 {
		dst = append(dst, termSmallBig, byte(len(magnitude)))
	} else {
		dst = binary.BigEndian.AppendUint32(append(dst, termLargeBig), uint32(len(magnitude)))
	}
	var sign byte
	if n.Sign() < 0 {
		sign = 1
	}
	return append(append(dst, sign), magnitude...)
}

// bigInteger reads an integer of any size; what is none is 0. It halves long
// ones, since SetString takes time with the square of the length: minutes for
// a document that is one number.
func bigInteger(text []byte) *big.Int {
	const direct = 2000
	if len(text) <= direct {
		n, ok := new(big.Int).SetString(string(text), 10)
		if !ok {
			n = new(big.Int)
		}
		return n
	}
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	low := len(text) / 2
	n := bigInteger(text[:len(text)-low])
	n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(low)), nil))
	n.Add(n, bigInteger(text[len(text)-low:]))
	if negative {
		n.Neg(n)
	}
	return n
}
