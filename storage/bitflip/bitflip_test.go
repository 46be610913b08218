package bitflip

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// TestOneBit: each single bit is found, in the text and in its sum; of two or three bits none is that
// makes another text of it.
func TestOneBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(t, "text")
		whole := binary.LittleEndian.AppendUint32(bytes.Clone(text), Mask(Sum(text)))
		n := rapid.IntRange(0, 3).Draw(t, "bits")
		bits := rapid.SliceOfNDistinct(rapid.IntRange(0, 8*len(whole)-1), n, n, rapid.ID[int]).Draw(t, "which")
		hurt := bytes.Clone(whole)
		for _, bit := range bits {
			hurt[bit/8] ^= 1 << (bit % 8)
		}
		at, mask, ok := FindStored(hurt[:len(text)], binary.LittleEndian.Uint32(hurt[len(text):]))
		if ok != (n == 1) && n < 2 {
			t.Fatalf("%d bits: found is %t", n, ok)
		}
		if n == 1 {
			if hurt[at] ^= mask; !bytes.Equal(hurt, whole) {
				t.Fatalf("another bit was found: %d, %x", at, mask)
			}
		}
		if n == 2 && ok && at < len(text) && bits[0] < 8*len(text) && bits[1] < 8*len(text) {
			t.Fatalf("two bits of the text were taken for one: %d, %x", at, mask)
		}
	})
}
