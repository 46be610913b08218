package format

import "encoding/binary"

// Origin names a store that another one continues: the continuing store holds
// every change that the origin held up to a sequence, of the ids that belong to
// it, under the same sequence.
type Origin struct {
	UUID [16]byte
	Upto uint64
}

// AppendOrigins writes the meta entry: version, number of origins, each uuid and
// sequence.
func AppendOrigins(dst []byte, origins []Origin) []byte {
	dst = append(dst, valueVersion)
	dst = binary.AppendUvarint(dst, uint64(len(origins)))
	for i := range origins {
		dst = append(dst, origins[i].UUID[:]...)
		dst = binary.AppendUvarint(dst, origins[i].Upto)
	}
	return dst
}

// DecodeOrigins reads what AppendOrigins wrote.
func DecodeOrigins(b []byte) ([]Origin, error) {
	r := cursor{b: b}
	version, n := r.byte(), r.uvarint()
	if r.bad || version != valueVersion || n > uint64(len(r.b)) {
		return nil, Corrupt("origins")
	}
	origins := make([]Origin, n)
	for i := range origins {
		copy(origins[i].UUID[:], r.take(uint64(len(origins[i].UUID))))
		origins[i].Upto = r.uvarint()
	}
	if r.bad || len(r.b) != 0 {
		return nil, Corrupt("origins")
	}
	return origins, nil
}
