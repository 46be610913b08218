package index

import (
	"encoding/binary"

	"divan/storage"
	"divan/storage/fault"
)

// Position is how much of its copy an index reflects.
type Position struct {
	Seq      uint64 // update sequence
	PurgeSeq uint64
	// Scanned, while an index is filled for the first time, is the last id that
	// is in it; Filled says that it holds every document.
	Scanned string
	Filled  bool
}

// positionKey is where an index keeps its position. All other keys that begin
// with something else belong to its kind.
const positionKey = "m\x00position"

const positionVersion = 1

func (p *Position) append(dst []byte) []byte {
	filled := byte(0)
	if p.Filled {
		filled = 1
	}
	dst = append(dst, positionVersion, filled)
	dst = binary.AppendUvarint(dst, p.Seq)
	dst = binary.AppendUvarint(dst, p.PurgeSeq)
	return append(dst, p.Scanned...)
}

// ReadPosition returns the position of an index; the zero value is that of an
// empty one.
func ReadPosition(snap *storage.IndexSnapshot) (p Position, err error) {
	var buf [64]byte
	b, ok, err := snap.Get(buf[:0], []byte(positionKey))
	if err != nil || !ok {
		return p, err
	}
	if len(b) < 2 || b[0] != positionVersion {
		return p, errPosition()
	}
	p.Filled = b[1] == 1
	b = b[2:]
	for _, field := range [...]*uint64{&p.Seq, &p.PurgeSeq} {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return p, errPosition()
		}
		*field, b = v, b[n:]
	}
	p.Scanned = string(b)
	return p, nil
}

func errPosition() error { return fault.New(fault.Corruption, "The index has a malformed position.") }

// covers reports whether the index holds everything up to another position.
func (p *Position) covers(o Position) bool {
	return p.Filled && p.Seq >= o.Seq && p.PurgeSeq >= o.PurgeSeq
}
