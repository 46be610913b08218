package postings

import (
	"encoding/binary"

	"divan/storage/fault"
)

// Number names a version of a document: a chunk and, in its last 16 bits, an offset.
type Number uint64

// Numbers of a chunk, of a block of ids, and of a block of a column.
const (
	ChunkBits  = 16
	ChunkSize  = 1 << ChunkBits
	idBits     = 8
	columnBits = 12

	// IDsAtOnce is how many ids are read at once.
	IDsAtOnce = 1 << idBits
)

// Chunk returns the chunk of a number.
func (n Number) Chunk() uint32 { return uint32(n >> ChunkBits) }

// Offset returns where in its chunk a number is.
func (n Number) Offset() uint32 { return uint32(n & (ChunkSize - 1)) }

// At returns the number at an offset of a chunk.
func At(chunk, offset uint32) Number { return Number(chunk)<<ChunkBits | Number(offset) }

// The spaces of keys.
const (
	spaceID     = 'b'
	spaceColumn = 'c'
	spaceDead   = 'd'
	spaceField  = 'f'
	spaceSize   = 'e'
	spaceIDs    = 'i'
	spaceList   = 'p'
	spaceStored = 's'
	totalsKey   = "t"
)

func appendNumber(dst []byte, n Number) []byte {
	dst = binary.BigEndian.AppendUint32(dst, n.Chunk())
	return binary.BigEndian.AppendUint16(dst, uint16(n))
}

func decodeNumber(b []byte) (Number, error) {
	if len(b) != 6 {
		return 0, errDamaged()
	}
	return At(binary.BigEndian.Uint32(b), uint32(binary.BigEndian.Uint16(b[4:]))), nil
}

func appendIDKey(dst []byte, id string) []byte { return append(append(dst, spaceID), id...) }

func appendIDsKey(dst []byte, n Number) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, spaceIDs), n.Chunk())
	return append(dst, byte(n.Offset()>>idBits))
}

func appendFieldKey(dst []byte, field string) []byte {
	return append(append(dst, spaceField), field...)
}

func appendStoredKey(dst []byte, n Number) []byte { return appendNumber(append(dst, spaceStored), n) }

func appendDeadKey(dst []byte, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceDead), chunk)
}

func appendSizeKey(dst []byte, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceSize), chunk)
}

func appendField(dst []byte, field string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(field))), field...)
}

// appendListsKey begins the keys of the lists of a field in a chunk: the term follows.
func appendListsKey(dst []byte, chunk uint32, field string) []byte {
	return appendField(binary.BigEndian.AppendUint32(append(dst, spaceList), chunk), field)
}

// appendColumnKey begins the keys of the blocks of a column in a chunk: a byte with
// the block follows.
func appendColumnKey(dst []byte, chunk uint32, kind Column, field string) []byte {
	dst = binary.BigEndian.AppendUint32(append(dst, spaceColumn), chunk)
	return appendField(append(dst, byte(kind)), field)
}

func errDamaged() error {
	return fault.New(fault.Corruption, "The full-text index has a malformed value.")
}

// cutUvarint takes a number of at most limit from the front; ok is false when there
// is none.
func cutUvarint(b []byte, limit uint64) (v uint64, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 && uint64(b[0]) <= limit { // most are
		return uint64(b[0]), b[1:], true
	}
	v, n := binary.Uvarint(b)
	if n <= 0 || v > limit {
		return 0, nil, false
	}
	return v, b[n:], true
}

// cutText takes a text behind its length from the front.
func cutText(b []byte) (text, rest []byte, ok bool) {
	n, rest, ok := cutUvarint(b, uint64(len(b)))
	if !ok || n > uint64(len(rest)) {
		return nil, nil, false
	}
	return rest[:n:n], rest[n:], true
}
