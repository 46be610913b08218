package archive

import "encoding/binary"

// cursor reads fields from bytes; bad stays set after the first failure.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

// take returns n bytes, nil when there are fewer.
func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() (v byte) {
	if b := c.take(1); b != nil {
		v = b[0]
	}
	return v
}

func (c *cursor) uuid() (u UUID) {
	copy(u[:], c.take(uint64(len(u))))
	return u
}

func (c *cursor) sum() (s Sum) {
	copy(s[:], c.take(uint64(len(s))))
	return s
}

func (c *cursor) be32() (v uint32) {
	if b := c.take(4); b != nil {
		v = binary.BigEndian.Uint32(b)
	}
	return v
}

func (c *cursor) be64() (v uint64) {
	if b := c.take(8); b != nil {
		v = binary.BigEndian.Uint64(b)
	}
	return v
}

func (c *cursor) rng() Range { return Range{c.be32(), c.be32()} }

// items reads how many items follow, each of at least so many bytes, and makes space for them.
func items[T any](c *cursor, least int) []T {
	n := c.uvarint()
	switch {
	case n > uint64(len(c.b)/least):
		c.b, c.bad = nil, true
		return nil
	case n == 0:
		return nil
	}
	return make([]T, n)
}

func appendRange(dst []byte, r Range) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, r.Begin), r.End)
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
