package reduce

import (
	"encoding/binary"
	"math"

	"divan/storage/fault"
)

// reader takes a state apart. After a failure it gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() {
	r.b, r.bad = nil, true
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) uint64() uint64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

func (r *reader) float() float64 {
	f := math.Float64frombits(r.uint64())
	if math.IsNaN(f) {
		r.fail()
		return 0
	}
	return f
}

// count reads how many parts follow, each of at least one byte.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

// text reads bytes with their length before them.
func (r *reader) text() []byte {
	n := r.count()
	t := r.b[:n:n]
	r.b = r.b[n:]
	return t
}

// end returns the error of a state that was malformed or goes on.
func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return errState()
	}
	return nil
}

func errState() error {
	return fault.New(fault.Corruption, "the state of a reduce function is malformed")
}

func appendText(dst, text []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}
