package reduce

import (
	"encoding/binary"
	"strconv"
)

// count is _count. Its state is the number of rows.
type count struct{}

// Reduce implements Function.
func (count) Reduce(dst []byte, rows []Row) ([]byte, error) {
	return binary.AppendUvarint(dst, uint64(len(rows))), nil
}

// Rereduce implements Function.
func (count) Rereduce(dst []byte, states [][]byte) ([]byte, error) {
	var n uint64
	for _, state := range states {
		r := reader{b: state}
		n += r.uvarint()
		if err := r.end(); err != nil {
			return dst, err
		}
	}
	return binary.AppendUvarint(dst, n), nil
}

// Final implements Function.
func (count) Final(dst, state []byte) ([]byte, error) {
	r := reader{b: state}
	dst = strconv.AppendUint(dst, r.uvarint(), 10)
	return dst, r.end()
}
