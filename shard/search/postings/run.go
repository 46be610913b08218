package postings

import (
	"encoding/binary"
	"math"
)

// A run is up to runDocs documents of a list: their number, the first offset, the last
// one minus the first, the bytes of both parts, the highest frequency, and a byte with the
// least length; then for each document the distance to
// the one before, shifted left by one, with 1 for a frequency of 1 and otherwise followed
// by the frequency; then the positions, for each document as distances from 0 on. The
// distance of the first document is 0.
//
// The least length is the LengthByte of the shortest of the documents in the field; 0 where
// one has no length, or the shortest that there is: the score has no bound by it then.
type run struct {
	docs            int
	first, last     uint32
	highest         uint32
	shortest        byte
	list, positions []byte
}

const runDocs = 128

// cutRun takes a run from the front of a list.
func cutRun(b []byte) (r run, rest []byte, ok bool) {
	var head [6]uint64
	for i, limit := range [...]uint64{runDocs, ChunkSize - 1, ChunkSize - 1, math.MaxInt32, math.MaxInt32, math.MaxInt32} {
		if head[i], b, ok = cutUvarint(b, limit); !ok {
			return run{}, nil, false
		}
	}
	if len(b) == 0 {
		return run{}, nil, false
	}
	shortest := b[0]
	b = b[1:]
	first, last, list, positions := head[1], head[1]+head[2], head[3], head[4]
	if head[0] == 0 || head[5] == 0 || last >= ChunkSize || list+positions > uint64(len(b)) || list < head[0] || b[0] > 1 {
		return run{}, nil, false
	}
	r = run{
		docs: int(head[0]), first: uint32(first), last: uint32(last), highest: uint32(head[5]), shortest: shortest,
		list: b[:list:list], positions: b[list : list+positions : list+positions],
	}
	return r, b[list+positions:], true
}

// append writes a run, moved by some numbers.
func (r *run) append(dst []byte, base uint32) []byte {
	for _, v := range [...]uint64{uint64(r.docs), uint64(r.first + base), uint64(r.last - r.first), uint64(len(r.list)), uint64(len(r.positions)), uint64(r.highest)} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(append(append(dst, r.shortest), r.list...), r.positions...)
}

// add appends a document behind all others. length is its LengthByte; 0: it has none.
func (r *run) add(offset uint32, positions []uint32, length byte) {
	if r.docs == 0 {
		r.first, r.last, r.shortest = offset, offset, length
	}
	r.highest, r.shortest = max(r.highest, uint32(len(positions))), min(r.shortest, length)
	code := uint64(offset-r.last) << 1
	if n := uint64(len(positions)); n == 1 {
		r.list = binary.AppendUvarint(r.list, code|1)
	} else {
		r.list = binary.AppendUvarint(binary.AppendUvarint(r.list, code), n)
	}
	before := uint32(0)
	for _, p := range positions {
		r.positions = binary.AppendUvarint(r.positions, uint64(p-before))
		before = p
	}
	r.last = offset
	r.docs++
}

// reset empties the run and keeps its memory.
func (r *run) reset() { *r = run{list: r.list[:0], positions: r.positions[:0]} }

// join appends a later run.
func (r *run) join(o *run) {
	r.list = binary.AppendUvarint(r.list, uint64(o.first-r.last)<<1|uint64(o.list[0]))
	r.list = append(r.list, o.list[1:]...)
	r.positions = append(r.positions, o.positions...)
	r.docs += o.docs
	r.last = o.last
	r.highest, r.shortest = max(r.highest, o.highest), min(r.shortest, o.shortest)
}

// Join makes the value of a key of an index shorter that operands of merges were put
// together to: of a list, runs of few documents become one. It is storage.Options.JoinIndex.
func Join(key, value []byte) []byte {
	if len(key) == 0 || key[0] != spaceList {
		return value
	}
	out := make([]byte, 0, len(value))
	var joined run
	for rest := value; len(rest) > 0; {
		var r run
		var ok bool
		if r, rest, ok = cutRun(rest); !ok || joined.docs > 0 && r.first <= joined.last {
			return value // readers find that it is damaged
		}
		if joined.docs+r.docs > runDocs {
			out = joined.append(out, 0)
			joined.reset()
		}
		if joined.docs > 0 {
			joined.join(&r)
			continue
		}
		list, positions := append(joined.list, r.list...), append(joined.positions, r.positions...)
		joined = r
		joined.list, joined.positions = list, positions
	}
	if joined.docs > 0 {
		out = joined.append(out, 0)
	}
	return out
}
