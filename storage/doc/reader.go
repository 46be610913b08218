package doc

import "encoding/binary"

// reader takes stored bytes apart. After any failed read bad is set and all
// further reads return zero values, so that callers check once at the end.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() {
	r.bad = true
	r.b = nil
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
	// Most numbers here are small.
	if len(r.b) > 1 {
		a, b := r.b[0], r.b[1]
		if a < 0x80 {
			r.b = r.b[1:]
			return uint64(a)
		}
		if b < 0x80 {
			r.b = r.b[2:]
			return uint64(a&0x7f) | uint64(b)<<7
		}
	}
	return r.longUvarint()
}

func (r *reader) longUvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// take returns the next n bytes, aliasing the input.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

// bytes returns the bytes that a uvarint length announces, aliasing the input.
func (r *reader) bytes() []byte { return r.take(r.uvarint()) }

// text is bytes, but as a slice of all, a string whose end is the end of the
// input: several texts then cost one allocation.
func (r *reader) text(all string) string {
	n := r.uvarint()
	from := len(all) - len(r.b)
	if r.take(n); r.bad {
		return ""
	}
	return all[from : from+int(n)]
}

// appendText appends the length of s and s.
func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
