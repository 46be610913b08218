package postings

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestSeekReadsOnce: a block is read once, however many parts of a query look at its column, in
// any order, and whether documents have values or not.
func TestSeekReadsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, block := map[uint32][]string{}, []byte(nil)
		for offset := range uint32(12) {
			for range rapid.IntRange(0, 2).Draw(t, "values") {
				value := rapid.SampledFrom([]string{"", "a", "bc"}).Draw(t, "value")
				want[offset] = append(want[offset], value)
				block = append(append(block, 0, byte(offset), byte(len(value))), value...)
			}
		}
		// Without a reader, what reads fails.
		v := &Values{name: columnName{kind: Facets}, open: true, block: Held{Bytes: block}, rest: block, from: block}
		for range 20 {
			offset := rapid.Uint32Range(0, 13).Draw(t, "offset")
			got := []string(nil)
			value, ok, err := v.Seek(At(0, offset))
			for first := true; ok && (first || rapid.Bool().Draw(t, "on")); first = false {
				got = append(got, string(value))
				value, ok, err = v.Next()
			}
			if err != nil {
				t.Fatal(err)
			}
			of := want[offset]
			if fmt.Sprint(got) != fmt.Sprint(of[:min(len(got), len(of))]) || !ok && len(got) != len(of) {
				t.Fatalf("%d has %q in place of %q", offset, got, of)
			}
		}
	})
}
