package keyspace

// Borders of blocks: an id whose border hash is a multiple of LowMask+1 begins one of the low level, of TopMask+1
// also one of the top level; sequences do at multiples of powers of two.
const (
	LowMask  = 1<<5 - 1
	TopMask  = 1<<11 - 1
	LowShift = 8  // sequences of a low block: 1<<LowShift
	TopShift = 16 // of a top block
)

// BorderHash spreads ids. It is part of the format. CRC-32 would not do: it
// chooses the shard, so that the ids of one shard share some of its bits.
func BorderHash[T string | []byte](id T) uint64 {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h ^= h >> 32 // the low bits of FNV depend on the low bits of the bytes only
	return h * 0x9e3779b97f4a7c15 >> 32
}
