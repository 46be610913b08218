package view

import (
	"bytes"
	"encoding/binary"

	"divan/storage/fault"
)

// The keyspaces of an index (FORMAT.md); package index has 'm'.
const (
	spaceBack   byte = 'b' // by document: which rows it has
	spaceBlocks byte = 'g' // aggregates
	spaceRows   byte = 'r'
	spaceState  byte = 's'
)

// stateKey is where the totals of an index are.
const stateKey = "s\x00"

// appendTree begins the keys of one tree of rows or of its blocks.
func appendTree(dst []byte, space byte, tree int) []byte {
	return binary.BigEndian.AppendUint16(append(dst, space), uint16(tree))
}

// treePrefix is the length of what appendTree appends.
const treePrefix = 3

// appendEscaped appends a text that is followed by more: 00 becomes 00 ff, and
// the end is 00 01. The order of texts is kept, and none is a prefix of another.
func appendEscaped[T string | []byte](dst []byte, text T) []byte {
	for i := range len(text) {
		if dst = append(dst, text[i]); text[i] == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// cutEscaped reverses appendEscaped and appends the text to dst.
func cutEscaped(dst, b []byte) (text, rest []byte, ok bool) {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 == len(b) {
			return dst, nil, false
		}
		dst = append(dst, b[:i]...)
		switch b[i+1] {
		case 1:
			return dst, b[i+2:], true
		case 0xff:
			dst = append(dst, 0)
		default:
			return dst, nil, false
		}
		b = b[i+2:]
	}
}

// appendOrdinal appends the place of a row among those of its document, so that
// the bytes are in the order of the numbers.
func appendOrdinal(dst []byte, n int) []byte {
	if n < 0x80 {
		return append(dst, byte(n))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(n)|1<<31)
}

// appendRowKey appends what comes behind the tree in the key of a row. sort
// begins with the partition where rows are kept by partition.
func appendRowKey(dst, sort []byte, id string, ordinal int) []byte {
	return appendOrdinal(appendEscaped(append(dst, sort...), id), ordinal)
}

// beyond sorts after any bytes that may come behind a part of a row's key: no
// id and no ordinal begins with it.
const beyond = 0xff

// rowValue is the value of a row. Its parts alias the encoded value.
type rowValue struct {
	sort       int // length of the sort key, with the partition
	key, value []byte
}

// appendLengths begins the value of a row with the lengths of its sort key and key.
func appendLengths(dst []byte, sort, key int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(sort)), uint64(key))
}

func decodeRowValue(b []byte) (v rowValue, err error) {
	sort, n := binary.Uvarint(b)
	if n <= 0 {
		return v, errRow()
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 || size > uint64(len(b)-n-m) {
		return v, errRow()
	}
	b = b[n+m:]
	return rowValue{sort: int(sort), key: b[:size], value: b[size:]}, nil
}

func errRow() error { return fault.New(fault.Corruption, "The index has a malformed row.") }

// backRow is one row in the back index of a document.
type backRow struct {
	tree, ordinal int
	size          int    // bytes of key and value
	sort          []byte // with the partition
}

func appendBackRow(dst []byte, r *backRow) []byte {
	for _, n := range [...]int{r.tree, r.ordinal, r.size, len(r.sort)} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return append(dst, r.sort...)
}

// cutBackRow reads the first row of what is left.
func cutBackRow(b []byte) (r backRow, rest []byte, err error) {
	var length int
	for _, field := range [...]*int{&r.tree, &r.ordinal, &r.size, &length} {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<31 {
			return r, nil, errRow()
		}
		*field, b = int(v), b[n:]
	}
	if length > len(b) {
		return r, nil, errRow()
	}
	r.sort = b[:length]
	return r, b[length:], nil
}

func appendBackKey(dst []byte, id string) []byte { return append(append(dst, spaceBack), id...) }

// appendBlockKey appends the key of a block; level is from 1 on.
func appendBlockKey(dst []byte, tree, level int, border []byte) []byte {
	return append(append(appendTree(dst, spaceBlocks, tree), byte(level)), border...)
}

// blockPrefix is the length of a block's key before the border.
const blockPrefix = treePrefix + 1

// keyEnd returns the first key behind all that begin with a prefix whose last
// byte is below 0xff.
func keyEnd(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
