// Package format encodes the stored values that package storage itself defines;
// records and revisions are encoded by package doc. FORMAT.md is the table of both.
package format

import (
	"encoding/binary"

	"divan/storage/doc"
	"divan/storage/fault"
)

const valueVersion = 0x10 // upper four bits of the first byte; the lower ones are flags

// Corrupt is the error for stored bytes that do not decode.
func Corrupt(what string) error {
	return fault.New(fault.Corruption, "stored "+what+" does not decode")
}

// cursor reads varints and strings; bad stays set after the first failure.
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

func (c *cursor) varint() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.b, c.bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) rev() doc.Rev {
	pos := c.uvarint()
	return doc.Rev{Pos: pos, ID: string(c.take(c.uvarint()))}
}

func appendRev(dst []byte, rev doc.Rev) []byte {
	dst = binary.AppendUvarint(dst, rev.Pos)
	dst = binary.AppendUvarint(dst, uint64(len(rev.ID)))
	return append(dst, rev.ID...)
}
