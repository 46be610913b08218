package format

import (
	"encoding/binary"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"divan/storage/doc"
)

// SumsMerger adds the operands of an aggregate's key. Its name is stored on
// disk and must never change; neither must the meaning of an operand.
//
// It is deliberately no pebble.DeletableValueMerger: a compaction that drops
// the merged result of a SET writes no tombstone, so that an older version of
// the key in a lower level would come back.
func SumsMerger() *pebble.Merger {
	return &pebble.Merger{
		Name: "divan.sums.v1",
		Merge: func(_, value []byte) (pebble.ValueMerger, error) {
			s, err := DecodeSums(value)
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
	s, err := DecodeSums(value)
	if err != nil {
		return err
	}
	m.s.Add(s)
	return nil
}

// MergeOlder implements pebble.ValueMerger.
func (m *sumsOperand) MergeOlder(value []byte) error { return m.MergeNewer(value) }

// Finish implements pebble.ValueMerger.
func (m *sumsOperand) Finish(bool) ([]byte, io.Closer, error) {
	return AppendSums(nil, m.s), nil, nil
}

// Sums are totals over a range of documents. External and Active are bytes;
// they are kept only by a store with CreateOptions.Partitioned.
type Sums struct {
	Live, Deleted, External, Active int64
}

// Add adds other sums.
func (s *Sums) Add(o Sums) {
	s.Live += o.Live
	s.Deleted += o.Deleted
	s.External += o.External
	s.Active += o.Active
}

// Neg returns what takes the sums away again.
func (s Sums) Neg() Sums { return Sums{-s.Live, -s.Deleted, -s.External, -s.Active} }

// IsZero reports whether nothing is counted.
func (s Sums) IsZero() bool { return s == Sums{} }

// AppendSums writes the value of an aggregate: signed varints, trailing zeros
// left out.
func AppendSums(dst []byte, s Sums) []byte {
	v := [...]int64{s.Live, s.Deleted, s.External, s.Active}
	n := len(v)
	for n > 0 && v[n-1] == 0 {
		n--
	}
	for _, x := range v[:n] {
		dst = binary.AppendVarint(dst, x)
	}
	return dst
}

// DecodeSums reads what AppendSums wrote.
func DecodeSums(b []byte) (Sums, error) {
	var s Sums
	r := cursor{b: b}
	for _, p := range [...]*int64{&s.Live, &s.Deleted, &s.External, &s.Active} {
		if len(r.b) == 0 {
			break
		}
		*p = r.varint()
	}
	if r.bad || len(r.b) != 0 {
		return Sums{}, Corrupt("aggregate")
	}
	return s, nil
}

// HeadSums returns what one document adds to the sums.
func HeadSums(h *doc.Head) Sums {
	s := Sums{External: h.External, Active: h.Active}
	if h.Deleted {
		s.Deleted = 1
	} else {
		s.Live = 1
	}
	return s
}

// RecordSums is HeadSums of a record.
func RecordSums(r *doc.Record) Sums {
	return HeadSums(&doc.Head{Deleted: r.Deleted, External: r.External, Active: r.Active})
}
