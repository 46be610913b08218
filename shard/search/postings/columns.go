package postings

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"sort"
)

// Column is the kind of values in a column. The entries of a block are in the order
// of their documents: the offset in the block in 2 bytes, and the value. A document
// may have several of them, or none.
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

// Length returns, about, the length that LengthByte encoded.
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

// columnName names a column of an index.
type columnName struct {
	kind  Column
	field string
}

// Values reads a column. It holds one block of it, which is read again only when another one was
// looked at meanwhile.
type Values struct {
	r    *Reader
	name columnName

	chunk, number uint32 // of the block
	open          bool
	block         Held
	asked         uint32 // the offset in the block that Seek looked for last
	found         bool   // the entry at hand is the result of that Seek
	from          []byte // of the block, where the entry that it found begins, or before
	rest          []byte // of the block
	offset        uint32 // of the entry at hand
	value         []byte
	have          bool
	key           []byte

	has, known bool // a document has a value, when that is known
}

// Values returns a column. It is the same for all parts of a query that ask for it, so that it is
// held once: each of them begins with Seek, and is done with its values before another one goes on.
func (r *Reader) Values(kind Column, field string) *Values {
	name := columnName{kind, field}
	v := r.columns[name]
	if v == nil {
		if r.columns == nil {
			r.columns = map[columnName]*Values{}
		}
		v = &Values{r: r, name: name}
		r.columns[name] = v
	}
	return v
}

// Seek returns the first value of a number, which is valid until another block is looked at; ok
// is false when it has none. Numbers that ascend are found soonest.
func (v *Values) Seek(n Number) (value []byte, ok bool, err error) {
	chunk, number, offset := n.Chunk(), n.Offset()>>columnBits, n.Offset()&(1<<columnBits-1)
	switch same := v.open && v.chunk == chunk && v.number == number; {
	case !same:
		if err := v.read(chunk, number); err != nil {
			return nil, false, err
		}
		v.skip(offset)
	case v.asked == offset && v.found: // by another part of the query
		return v.value, v.offset == offset, nil
	case v.asked == offset: // which went on behind the first value
		v.rest, v.have = v.from, false
	case v.have && v.offset > offset && offset > v.asked: // there is none between what was asked for and the entry at hand
		v.asked = offset
		return nil, false, nil
	case v.have && v.offset > offset:
		v.rest, v.have = v.block.Bytes, false
		v.skip(offset)
	}
	if v.asked = offset; v.have && v.offset < offset {
		v.skip(offset)
	}
	for !v.have || v.offset < offset {
		v.from = v.rest
		if ok, err := v.step(); !ok {
			return nil, false, err
		}
	}
	v.found = true
	return v.value, v.offset == offset, nil
}

// read begins a block.
func (v *Values) read(chunk, number uint32) error {
	v.open = false
	if err := v.block.Close(); err != nil {
		return err
	}
	v.key = append(appendColumnKey(v.key[:0], chunk, v.name.kind, v.name.field), byte(number))
	var err error
	if v.block, err = v.r.hold(v.key); err != nil {
		return err
	}
	v.open, v.chunk, v.number, v.found, v.have = true, chunk, number, false, false
	v.rest, v.from = v.block.Bytes, v.block.Bytes
	return nil
}

// skip leaves out entries before an offset, where all entries are of the same length. Where each
// document has one entry, it is known where it is.
func (v *Values) skip(offset uint32) {
	n := offsetBytes + 1
	switch v.name.kind {
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
	v.offset, v.value, v.rest, v.have = cutEntry(v.name.kind, v.rest)
	if !v.have {
		v.open = false
		return false, errDamaged()
	}
	return true, nil
}

// Next returns the next value of the number of Seek.
func (v *Values) Next() (value []byte, ok bool, err error) {
	before := v.offset
	v.found = false
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

// Has reports whether a document had a value in a column; it may be dead. It is looked for once.
func (r *Reader) Has(kind Column, field string) (bool, error) {
	v := r.Values(kind, field)
	for chunk := range r.Chunks() {
		if v.known || v.has {
			break
		}
		if err := r.each(appendColumnKey(nil, chunk, kind, field), nil, func([]byte, []byte) (bool, error) {
			v.has = true
			return false, nil
		}); err != nil {
			return false, err
		}
	}
	v.known = true
	return v.has, nil
}

// each calls f for the keys that begin with a prefix, from a place behind it on, with
// what is behind the prefix, as long as it returns true.
func (r *Reader) each(prefix, from []byte, f func(key, value []byte) (more bool, err error)) error {
	w := walk{r: r, prefix: prefix, f: f}
	defer func() { r.give(w.taken) }()
	for again := true; again; {
		need, err := w.from(from)
		if again = need > 0; err != nil || !again {
			return err
		}
		if err := r.space.Take(need); err != nil {
			return err
		}
		w.taken += need
		from = w.at
	}
	return nil
}

// walk is each under way.
type walk struct {
	r      *Reader
	prefix []byte
	f      func(key, value []byte) (more bool, err error)
	taken  int    // of the space: as much as the largest value
	at     []byte // behind the prefix: the key for whose value there was no space
}

// from walks from a place on. It ends where there is no space for a value, and returns how many
// bytes it needs: nothing is kept while they are waited for.
func (w *walk) from(from []byte) (need int, err error) {
	lo := append(w.prefix[:len(w.prefix):len(w.prefix)], from...)
	it, err := w.r.snap.Iterate(lo, prefixEnd(w.prefix))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			return 0, err
		}
		key := it.Key()[len(w.prefix):]
		if more := len(v) - w.taken; more > 0 && w.r.space != nil {
			if !w.r.space.Has(more) {
				w.at = bytes.Clone(key)
				return more, nil
			}
			if err := w.r.space.Take(more); err != nil {
				return 0, err
			}
			w.taken = len(v)
		}
		if more, err := w.f(key, v); !more || err != nil {
			return 0, err
		}
	}
	return 0, nil
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
