package format

import "encoding/binary"

// Position is how far a dump of a store goes.
type Position struct{ Seq, PurgeSeq uint64 }

// AppendPosition writes the meta entry of a dump: version, the fields in order.
func AppendPosition(dst []byte, p Position) []byte {
	dst = append(dst, valueVersion)
	dst = binary.AppendUvarint(dst, p.Seq)
	return binary.AppendUvarint(dst, p.PurgeSeq)
}

// DecodePosition reads what AppendPosition wrote.
func DecodePosition(b []byte) (Position, error) {
	r := cursor{b: b}
	version := r.byte()
	p := Position{Seq: r.uvarint(), PurgeSeq: r.uvarint()}
	if r.bad || version != valueVersion || len(r.b) != 0 {
		return Position{}, Corrupt("position")
	}
	return p, nil
}
