package postings

import (
	"encoding/binary"
	"math"
)

// End is behind all offsets of a chunk.
const End = ChunkSize

// List walks over the documents of a list in one chunk, in the order of their offsets.
// The value must stay as it is. The zero value is an empty list.
type List struct {
	rest    []byte
	run     run
	decoded bool
	offsets [runDocs]uint32
	freqs   [runDocs]uint32
	at      int    // in offsets
	skipped int    // documents whose positions are before left
	left    []byte // positions that were not skipped
	bad     bool
}

// Reset begins a list anew.
func (l *List) Reset(value []byte) {
	l.rest, l.run, l.decoded, l.bad = value, run{}, false, false
}

// Err returns fault.Corruption when the list was damaged; it seems to end there.
func (l *List) Err() error {
	if l.bad {
		return errDamaged()
	}
	return nil
}

// fail ends the list.
func (l *List) fail() uint32 {
	l.bad, l.rest, l.run = true, nil, run{}
	return End
}

// Seek returns the first offset that is not below one, which must not be below the last
// answer; End: there is none.
func (l *List) Seek(offset uint32) uint32 {
	for l.run.docs == 0 || l.run.last < offset {
		if len(l.rest) == 0 {
			l.run = run{}
			return End
		}
		r, rest, ok := cutRun(l.rest)
		if !ok || l.run.docs > 0 && r.first <= l.run.last {
			return l.fail()
		}
		l.run, l.rest, l.decoded = r, rest, false
	}
	if !l.decoded && !l.decode() {
		return l.fail()
	}
	for l.offsets[l.at] < offset {
		l.at++
	}
	return l.offsets[l.at]
}

// decode reads the offsets and frequencies of the run.
func (l *List) decode() bool {
	b, offset, total, highest := l.run.list, uint64(l.run.first), uint64(0), uint64(0)
	for i := range l.run.docs {
		code, rest, ok := cutUvarint(b, 2*ChunkSize)
		freq := uint64(1)
		if ok && code&1 == 0 {
			freq, rest, ok = cutUvarint(rest, math.MaxInt32)
		}
		if !ok || freq == 0 || (code>>1 == 0) != (i == 0) {
			return false
		}
		b = rest
		offset += code >> 1
		total += freq
		highest = max(highest, freq)
		l.offsets[i], l.freqs[i] = uint32(offset), uint32(freq)
	}
	l.decoded, l.at, l.skipped, l.left = true, 0, 0, l.run.positions
	return len(b) == 0 && offset == uint64(l.run.last) && highest == uint64(l.run.highest) && total <= uint64(len(l.run.positions))
}

// Freq returns how often the term is in the document that Seek found.
func (l *List) Freq() uint32 { return l.freqs[l.at] }

// Positions appends where the term is in that document, ascending.
func (l *List) Positions(dst []uint32) []uint32 {
	skip := uint32(0)
	for ; l.skipped < l.at; l.skipped++ {
		skip += l.freqs[l.skipped]
	}
	b := l.left
	for ; skip > 0 && len(b) > 0; b = b[1:] {
		if b[0] < 0x80 {
			skip--
		}
	}
	l.left = b
	position := uint32(0)
	for range l.freqs[l.at] {
		d, n := binary.Uvarint(b)
		if n <= 0 {
			l.fail()
			return dst
		}
		position, b = position+uint32(d), b[n:]
		dst = append(dst, position)
	}
	return dst
}

// Docs returns how many documents the value of a list has, dead ones too.
func Docs(value []byte) (n int, err error) {
	for len(value) > 0 {
		r, rest, ok := cutRun(value)
		if !ok {
			return 0, errDamaged()
		}
		n, value = n+r.docs, rest
	}
	return n, nil
}
