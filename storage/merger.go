package storage

import (
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// sumsMerger adds the operands of an aggregate's key. Its name is stored on
// disk and must never change; neither must the meaning of an operand.
//
// It is deliberately no pebble.DeletableValueMerger: a compaction that drops
// the merged result of a SET writes no tombstone, so that an older version of
// the key in a lower level would come back.
func sumsMerger() *pebble.Merger {
	return &pebble.Merger{
		Name: "divan.sums.v1",
		Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			s, err := decodeSums(value)
			if err != nil {
				return nil, err
			}
			return &sumsOperand{s}, nil
		},
	}
}

// sumsOperand collects operands; addition does not care for their order.
type sumsOperand struct{ s Sums }

// MergeNewer implements pebble.ValueMerger.
func (m *sumsOperand) MergeNewer(value []byte) error {
	s, err := decodeSums(value)
	if err != nil {
		return err
	}
	m.s.add(s)
	return nil
}

// MergeOlder implements pebble.ValueMerger.
func (m *sumsOperand) MergeOlder(value []byte) error { return m.MergeNewer(value) }

// Finish implements pebble.ValueMerger.
func (m *sumsOperand) Finish(bool) ([]byte, io.Closer, error) {
	return appendSums(nil, m.s), nil, nil
}
