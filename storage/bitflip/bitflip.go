// Package bitflip finds the one bit of a text that is another one than its CRC-32C says. A
// text in which two bits are other ones is never taken for one with another bit: the distance of
// the code is 4 for all lengths that files have.
package bitflip

import (
	"hash/crc32"
	"sync"
)

// table is that of CRC-32C, bits in reflected order.
var table = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Sum returns the CRC-32C of a text.
func Sum(text []byte) uint32 { return crc32.Checksum(text, table()) }

// Find returns which bit of a text has to be flipped for its CRC-32C to be sum. ok is false when
// no single one does that, or none has to be.
func Find(text []byte, sum uint32) (at int, mask byte, ok bool) {
	wrong := Sum(text) ^ sum
	if wrong == 0 {
		return 0, 0, false
	}
	t := table()
	// What each bit of a byte adds to the sum: a CRC is linear. It begins with the last byte.
	var adds [8]uint32
	for bit := range adds {
		adds[bit] = t[1<<bit]
	}
	for at := len(text) - 1; at >= 0; at-- {
		for bit, add := range adds {
			if add == wrong {
				return at, 1 << bit, true
			}
			adds[bit] = t[byte(add)] ^ add>>8
		}
	}
	return 0, 0, false
}

// masked is how tables and logs of LevelDB and what came of it store a sum.
const masked = 0xa282ead8

// Mask returns a sum as it is stored.
func Mask(sum uint32) uint32 { return (sum>>15 | sum<<17) + masked }

// Unmask is the inverse of Mask.
func Unmask(stored uint32) uint32 {
	sum := stored - masked
	return sum>>17 | sum<<15
}

// FindStored is Find for a text with its sum as it is stored, of which a bit may be another one as
// well. Then at is behind the text, with the bytes of the sum in little-endian order.
func FindStored(text []byte, stored uint32) (at int, mask byte, ok bool) {
	if at, mask, ok := Find(text, Unmask(stored)); ok {
		return at, mask, true
	}
	sum := Mask(Sum(text))
	if wrong := sum ^ stored; wrong != 0 && wrong&(wrong-1) == 0 {
		for i := range 4 {
			if mask := byte(wrong >> (8 * i)); mask != 0 {
				return len(text) + i, mask, true
			}
		}
	}
	return 0, 0, false
}
