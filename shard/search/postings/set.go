package postings

import "math/bits"

// Set is a set of offsets of a chunk.
type Set [ChunkSize / 64]uint64

// Add adds an offset.
func (s *Set) Add(offset uint32) { s[offset>>6] |= 1 << (offset & 63) }

// Has reports whether an offset is in the set.
func (s *Set) Has(offset uint32) bool { return s[offset>>6]>>(offset&63)&1 != 0 }

// Seek returns the first offset of the set that is not below one; End: there is none.
func (s *Set) Seek(offset uint32) uint32 {
	if offset >= End {
		return End
	}
	word := s[offset>>6] &^ (1<<(offset&63) - 1)
	for i := offset >> 6; ; word = s[i] {
		if word != 0 {
			return i<<6 | uint32(bits.TrailingZeros64(word))
		}
		if i++; i == ChunkSize/64 {
			return End
		}
	}
}

// Len returns how many offsets the set has.
func (s *Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Keep removes what is not in another set.
func (s *Set) Keep(o *Set) {
	for i := range s {
		s[i] &= o[i]
	}
}

// AddList adds the documents of the value of a list.
func (s *Set) AddList(value []byte) error {
	var l List
	l.Reset(value)
	for d := l.Seek(0); d < End; d = l.Seek(d + 1) {
		s.Add(d)
	}
	return l.Err()
}
