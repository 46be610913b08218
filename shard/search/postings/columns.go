package postings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"sort"
)

// Column is what a column holds. The entries of a block are in the order of their
// documents: the offset in the block in 2 bytes, and the value. A document may have
// several of them, or none.
type Column byte

// The columns of a field.
const (
	Lengths      Column = 'l' // how many terms a document has of the field, as LengthByte: one entry
	Numbers      Column = 'n' // numbers: 8 bytes, IEEE 754
	Greatest     Column = 's' // the greatest term of a document: one entry, behind its length
	Facets       Column = 'f' // values that are counted, each behind its length
	NumberFacets Column = 'm' // numbers that are counted by ranges, as Numbers
)

// What LengthByte can hold: 8 steps for each doubling, from 2 to the power of -12 on.
const (
	lengthSteps = 8
	lengthShift = 12
)

// LengthByte keeps a positive length within 5 % of it, from 1/4,096 to a million; what is
// beyond becomes the next one. A field that was boosted is short.
func LengthByte(length float64) byte {
	return byte(max(0, min(math.MaxUint8, math.Round(lengthSteps*(math.Log2(length)+lengthShift)))))
}

// Length is what LengthByte was made of, about.
func Length(b byte) float64 { return math.Exp2(float64(b)/lengthSteps - lengthShift) }

const offsetBytes = 2

// cutEntry takes an entry from the front of a block.
func cutEntry(kind Column, b []byte) (offset uint32, value, rest []byte, ok bool) {
	if len(b) < offsetBytes {
		return 0, nil, nil, false
	}
	offset, b = uint32(binary.BigEndian.Uint16(b)), b[offsetBytes:]
	var n int
	switch kind {
	case Lengths:
		n = 1
	case Numbers, NumberFacets:
		n = 8
	default:
		value, rest, ok = cutText(b)
		return offset, value, rest, ok
	}
	if len(b) < n {
		return 0, nil, nil, false
	}
	return offset, b[:n:n], b[n:], true
}

// DecodeFloat reads a value of Numbers.
func DecodeFloat(value []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(value)) }

// Values reads a column at ascending numbers.
type Values struct {
	r     *Reader
	kind  Column
	field string

	chunk, block uint32
	open         bool
	asked        uint32 // the offset in the block that Seek looked for last
	rest         []byte // of the block
	offset       uint32 // of the entry at hand
	value        []byte
	have         bool
	key, buf     []byte
}

// Values returns a column.
func (r *Reader) Values(kind Column, field string) *Values {
	return &Values{r: r, kind: kind, field: field}
}

// Seek returns the first value of a number; ok is false when it has none. Numbers ascend
// from call to call within a block, or another block is begun.
func (v *Values) Seek(n Number) (value []byte, ok bool, err error) {
	chunk, block, offset := n.Chunk(), n.Offset()>>columnBits, n.Offset()&(1<<columnBits-1)
	switch same := v.open && v.chunk == chunk && v.block == block; {
	case same && v.have && v.offset > offset && offset > v.asked: // there is none between what was asked for and the entry at hand
		v.asked = offset
		return nil, false, nil
	case !same || v.have && v.offset > offset:
		v.key = append(appendColumnKey(v.key[:0], chunk, v.kind, v.field), byte(block))
		if v.buf, _, err = v.r.snap.Get(v.buf[:0], v.key); err != nil {
			return nil, false, err
		}
		v.open, v.chunk, v.block, v.rest, v.have = true, chunk, block, v.buf, false
		v.skip(offset)
	}
	v.asked = offset
	if v.have && v.offset < offset {
		v.skip(offset)
	}
	for !v.have || v.offset < offset {
		if ok, err := v.step(); !ok {
			return nil, false, err
		}
	}
	return v.value, v.offset == offset, nil
}

// skip leaves out entries before an offset, where all entries are of the same length. Where each
// document has one entry, it is known where it is.
func (v *Values) skip(offset uint32) {
	n := offsetBytes + 1
	switch v.kind {
	case Lengths:
	case Numbers, NumberFacets:
		n = offsetBytes + 8
	default:
		return
	}
	at := func(i int) uint32 { return uint32(binary.BigEndian.Uint16(v.rest[i*n:])) }
	entries := len(v.rest) / n
	if entries == 0 || at(0) >= offset {
		return
	}
	i := int(offset - at(0))
	if i >= entries || at(i) != offset || at(i-1) == offset {
		i = sort.Search(entries, func(i int) bool { return at(i) >= offset })
	}
	v.rest = v.rest[i*n:]
}

// step goes to the next entry.
func (v *Values) step() (ok bool, err error) {
	if len(v.rest) == 0 {
		v.have, v.offset = true, 1<<columnBits // behind all
		return false, nil
	}
	v.offset, v.value, v.rest, v.have = cutEntry(v.kind, v.rest)
	if !v.have {
		v.open = false
		return false, errDamaged()
	}
	return true, nil
}

// Next returns the next value of the number of Seek.
func (v *Values) Next() (value []byte, ok bool, err error) {
	before := v.offset
	if ok, err := v.step(); !ok {
		return nil, false, err
	}
	return v.value, v.offset == before, nil
}

// EachValue calls f for all entries of a column in a chunk, with the offset in the chunk
// and a value that is valid during the call.
func (r *Reader) EachValue(chunk uint32, kind Column, field string, f func(offset uint32, value []byte)) error {
	prefix := appendColumnKey(nil, chunk, kind, field)
	return r.each(prefix, nil, func(key, block []byte) (bool, error) {
		if len(key) != 1 || key[0] >= ChunkSize>>columnBits {
			return false, errDamaged()
		}
		for len(block) > 0 {
			offset, value, rest, ok := cutEntry(kind, block)
			if !ok || offset >= 1<<columnBits {
				return false, errDamaged()
			}
			f(uint32(key[0])<<columnBits|offset, value)
			block = rest
		}
		return true, nil
	})
}

// Has reports whether a document had a value in a column; it may be dead.
func (r *Reader) Has(kind Column, field string) (has bool, err error) {
	for chunk := range r.Chunks() {
		err = r.each(appendColumnKey(nil, chunk, kind, field), nil, func([]byte, []byte) (bool, error) {
			has = true
			return false, nil
		})
		if has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// each calls f for the keys that begin with a prefix, from a place behind it on, with
// what is behind the prefix, as long as it returns true.
func (r *Reader) each(prefix, from []byte, f func(key, value []byte) (more bool, err error)) (err error) {
	lo := append(prefix[:len(prefix):len(prefix)], from...)
	it, err := r.snap.Iterate(lo, prefixEnd(prefix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			return err
		}
		if more, err := f(it.Key()[len(prefix):], v); !more || err != nil {
			return err
		}
	}
	return nil
}

// prefixEnd is the first key behind all that begin with a prefix, which does not consist
// of 0xff.
func prefixEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
