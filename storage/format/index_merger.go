package format

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// indexMergerName is written in the files of every index since there are indexes,
// which Pebble opens with a merger of that name only.
const indexMergerName = "pebble.concatenate"

// IndexMerger puts the operands of merges one behind the other, the oldest first, and
// has join make the value shorter. It is associative as long as join does not change
// what a value means: a part of the operands may be joined before the others come.
func IndexMerger(join func(key, value []byte) []byte) *pebble.Merger {
	return &pebble.Merger{Name: indexMergerName, Merge: func(key, value []byte) (pebble.ValueMerger, error) {
		m := &indexOperands{join: join, operands: [][]byte{bytes.Clone(value)}, size: len(value)}
		if join != nil {
			m.key = bytes.Clone(key)
		}
		return m, nil
	}}
}

// indexOperands collects the operands of one key.
type indexOperands struct {
	join     func(key, value []byte) []byte
	key      []byte
	operands [][]byte // in the order in which they came
	newer    bool     // each is newer than the one before
	size     int      // bytes of all
}

// MergeNewer implements pebble.ValueMerger.
func (m *indexOperands) MergeNewer(value []byte) error {
	m.newer = true
	return m.MergeOlder(value)
}

// MergeOlder implements pebble.ValueMerger.
func (m *indexOperands) MergeOlder(value []byte) error {
	m.operands = append(m.operands, bytes.Clone(value))
	m.size += len(value)
	return nil
}

// Finish implements pebble.ValueMerger.
func (m *indexOperands) Finish(bool) ([]byte, io.Closer, error) {
	if len(m.operands) == 1 {
		return m.operands[0], nil, nil
	}
	out := make([]byte, 0, m.size)
	for i := range m.operands {
		if !m.newer {
			i = len(m.operands) - 1 - i
		}
		out = append(out, m.operands[i]...)
	}
	if m.join != nil {
		out = m.join(m.key, out)
	}
	return out, nil, nil
}
