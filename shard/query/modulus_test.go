package query

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// integer draws an integer of up to some 150 bits, often near a power of two.
func integer(t *rapid.T, label string) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(rapid.IntRange(0, 150).Draw(t, label+" bits")))
	n.Add(n, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, label+" beside")))
	if rapid.Bool().Draw(t, label+" negative") {
		n.Neg(n)
	}
	return n
}

// TestModulus compares $mod with big numbers: divisor, remainder and value are integers of
// any size.
func TestModulus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value, divisor := integer(t, "value"), integer(t, "divisor")
		if divisor.Sign() == 0 {
			return
		}
		rest := new(big.Int).Rem(value, divisor)
		for _, other := range []int64{0, 1, -1} {
			remainder := new(big.Int).Add(rest, big.NewInt(other))
			for _, r := range []*big.Int{remainder, new(big.Int).Neg(remainder), new(big.Int).Add(remainder, divisor)} {
				text := fmt.Sprintf(`{"n":{"$mod":[%d,%d]}}`, divisor, r)
				s, err := Parse([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if got, want := s.matches(fmt.Appendf(nil, `{"n":%d}`, value)), r.Cmp(rest) == 0; got != want {
					t.Errorf("%d %s: %v", value, text, got)
				}
			}
		}
	})
}

// TestModulusOfLongIntegers has what takes longest: the longest divisor, and an integer of
// some megabytes.
func TestModulusOfLongIntegers(t *testing.T) {
	s, err := Parse([]byte(`{"n":{"$mod":[1` + strings.Repeat("0", maxDivisor-1) + `,7]}}`))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWork(context.Background(), nil)
	if ok, err := s.Match(w, []byte(`{"n":3`+strings.Repeat("0", 100_000)+`7}`)); !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if _, err := s.Match(w, []byte(`{"n":3`+strings.Repeat("0", 64<<20)+`7}`)); err == nil {
		t.Error("an integer of 64 MB is divided")
	}
}
