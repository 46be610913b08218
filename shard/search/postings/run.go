package postings

import (
	"encoding/binary"
	"math"
)

// A run is up to runDocs documents of a list: their number, the first offset, the last
// one minus the first, the bytes of both parts; then for each document the distance to
// the one before, shifted left by one, with 1 for a frequency of 1 and otherwise followed
// by the frequency; then the positions, for each document as distances from 0 on. The
// distance of the first document is 0.
type run struct {
	docs            int
	first, last     uint32
	list, positions []byte
}

const runDocs = 128

// cutRun takes a run from the front of a list.
func cutRun(b []byte) (r run, rest []byte, ok bool) {
	var head [5]uint64
	for i, limit := range [...]uint64{runDocs, ChunkSize - 1, ChunkSize - 1, math.MaxInt32, math.MaxInt32} {
		if head[i], b, ok = cutUvarint(b, limit); !ok {
			return run{}, nil, false
		}
	}
	first, last, list, positions := head[1], head[1]+head[2], head[3], head[4]
	if head[0] == 0 || last >= ChunkSize || list+positions > uint64(len(b)) || list < head[0] || b[0] > 1 {
		return run{}, nil, false
	}
	r = run{docs: int(head[0]), first: uint32(first), last: uint32(last), list: b[:list:list], positions: b[list : list+positions : list+positions]}
	return r, b[list+positions:], true
}

// append writes a run, moved by some numbers.
func (r *run) append(dst []byte, base uint32) []byte {
	for _, v := range [...]uint64{uint64(r.docs), uint64(r.first + base), uint64(r.last - r.first), uint64(len(r.list)), uint64(len(r.positions))} {
		dst = binary.AppendUvarint(dst, v)
	}
	return append(append(dst, r.list...), r.positions...)
}

// add appends a document behind all others.
func (r *run) add(offset uint32, positions []uint32) {
	if r.docs == 0 {
		r.first, r.last = offset, offset
	}
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
		joined.docs, joined.first, joined.last = r.docs, r.first, r.last
		joined.list, joined.positions = append(joined.list, r.list...), append(joined.positions, r.positions...)
	}
	if joined.docs > 0 {
		out = joined.append(out, 0)
	}
	return out
}
