package collate

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOrderOfNumbers has integers that are no doubles, between doubles.
func TestOrderOfNumbers(t *testing.T) {
	ascending := []string{
		`0`, `5e-324`, `1`, `9007199254740991`, `9007199254740991.5`, `9007199254740993`, `9007199254740994.0`, `9007199254740995`,
		`1895131128281567232`, `1895131128281567233`, `1895131128281567234`, `9223372036854775807`, `9223372036854775808`,
		`18446744073709551615`, `18446744073709551616`, `18446744073709551617`, `99999999999999991611391`, `1e23`, `99999999999999991611393`,
		`100000000000000000000000`, `1.7976931348623157e308`, `1` + strings.Repeat("0", 309), `1` + strings.Repeat("0", 308) + `1`, `2` + strings.Repeat("0", 309),
		`1` + strings.Repeat("0", 5000),
	}
	var all []string
	for i := len(ascending) - 1; i > 0; i-- {
		all = append(all, "-"+ascending[i])
	}
	all = append(all, ascending...)
	for i := range all {
		for j := range i {
			for _, wrap := range []string{"%s", "[%s]", "[%s,1]", `{"a":%s}`} {
				a, b := fmt.Sprintf(wrap, all[j]), fmt.Sprintf(wrap, all[i])
				if bytes.Compare(key(t, a), key(t, b)) >= 0 || bytes.Compare(rawKey(t, a), rawKey(t, b)) >= 0 {
					t.Errorf("%.40s should sort before %.40s", a, b)
				}
			}
		}
	}
	for _, pair := range [][2]string{
		{`9007199254740992`, `9007199254740992.0`},
		{`-9007199254740992`, `-9.007199254740992e15`},
		{`99999999999999991611392`, `1e23`},
		{`9007199254740993.0`, `9007199254740992`},
		{`-0`, `0`},
		{`-0.0`, `0`},
		{`1e-400`, `0`},
	} {
		if !bytes.Equal(key(t, pair[0]), key(t, pair[1])) {
			t.Errorf("%s and %s should be equal", pair[0], pair[1])
		}
	}
}

// numberText draws the text of a number, often near a border of the encoding.
func numberText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "any") {
			return rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,5})?(e-?[0-9]{1,2})?`).Draw(t, "text")
		}
		v := new(big.Int).Lsh(big.NewInt(rapid.Int64Range(1, 9).Draw(t, "times")), rapid.SampledFrom([]uint{0, 50, 53, 54, 60, 63, 64, 65, 70, 500, 1022, 1024, 1100}).Draw(t, "shift"))
		v.Add(v, big.NewInt(rapid.Int64Range(-3, 3).Draw(t, "by")))
		if rapid.Bool().Draw(t, "negative") {
			v.Neg(v)
		}
		if f, _ := new(big.Float).SetInt(v).Float64(); rapid.Bool().Draw(t, "float") && v.BitLen() < 1024 {
			return strconv.FormatFloat(f, 'e', -1, 64)
		}
		return v.String()
	})
}

// exact returns the value of a number: an integer itself, any other as a double.
func exact(t *rapid.T, text string) *big.Float {
	if v, ok := new(big.Int).SetString(text, 10); ok {
		return new(big.Float).SetPrec(5000).SetInt(v)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return big.NewFloat(f)
}

// TestNumbersAsErlang compares the order of keys with that of the values.
func TestNumbersAsErlang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := numberText().Draw(t, "a"), numberText().Draw(t, "b")
		ka, err := AppendKey(nil, []byte(a))
		if err != nil {
			t.Fatal(err)
		}
		kb, err := AppendKey(nil, []byte(b))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := bytes.Compare(ka, kb), exact(t, a).Cmp(exact(t, b)); got != want {
			t.Fatalf("%s to %s is %d, want %d", a, b, got, want)
		}
		if end := behindNumber(append(ka, 0x80), 1); end != len(ka) {
			t.Fatalf("the key of %s ends at %d, want %d", a, end, len(ka))
		}
		if !bytes.Equal(ka, kb) && bytes.HasPrefix(kb, ka) {
			t.Fatalf("the key of %s begins that of %s", a, b)
		}
	})
}

// TestLongNumbers has a number for which work in the square of its length would
// outlast the limit of the test binary.
func TestLongNumbers(t *testing.T) {
	text := "-" + strings.Repeat("7", 8<<20)
	if k := key(t, text); len(k) > len(text)+16 {
		t.Errorf("a key of %d bytes", len(k))
	}
	if k := key(t, "0."+strings.Repeat("7", 8<<20)); len(k) != 9 {
		t.Errorf("a key of %d bytes", len(k))
	}
}
