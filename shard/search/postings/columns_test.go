package postings

import "testing"

// TestSeekReadsOnce: a block is read once for ascending numbers, whether they have values
// or not.
func TestSeekReadsOnce(t *testing.T) {
	v := &Values{kind: Lengths, open: true, rest: []byte{0, 5, 'a', 0, 9, 'b'}} // without a reader, what reads fails
	for offset := range uint32(1 << columnBits) {
		value, ok, err := v.Seek(At(0, offset))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[uint32]string{5: "a", 9: "b"}[offset]; ok != (want != "") || ok && string(value) != want {
			t.Errorf("%d has %q, %t", offset, value, ok)
		}
	}
}
