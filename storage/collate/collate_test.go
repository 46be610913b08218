package collate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sample returns strings with the keys that ICU 72.1 computed for them.
func sample(t *testing.T) (texts []string, keys [][]byte) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	zipped, err := os.ReadFile("testdata/icu.txt.gz")
	must(err)
	zr, err := gzip.NewReader(bytes.NewReader(zipped))
	must(err)
	scan := bufio.NewScanner(zr)
	for scan.Scan() {
		text, key, _ := strings.Cut(scan.Text(), " ")
		s, err := hex.DecodeString(text)
		must(err)
		k, err := hex.DecodeString(key)
		must(err)
		texts, keys = append(texts, string(s)), append(keys, k)
	}
	must(scan.Err())
	return texts, keys
}

func TestStringsAsICU(t *testing.T) {
	texts, keys := sample(t)
	if len(texts) < 9000 {
		t.Fatalf("only %d strings in the sample", len(texts))
	}
	for i, s := range texts {
		if got := AppendString(nil, s); !bytes.Equal(got, keys[i]) {
			t.Errorf("%+q: got %x, ICU has %x", s, got, keys[i])
		}
		b := &scratch{}
		root().elements(b, s)
		if got := root().appendElements(nil, b); !bytes.Equal(got, keys[i]) {
			t.Errorf("%+q by the general way: got %x, ICU has %x", s, got, keys[i])
		}
	}
}

func key(t *testing.T, value string) []byte {
	t.Helper()
	k, err := AppendKey(nil, []byte(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return k
}

func TestOrderOfValues(t *testing.T) {
	// Each is less than the next.
	values := []string{
		`null`, `false`, `true`,
		`-1e300`, `-5`, `-0.5`, `0`, `1e-7`, `1`, `1.5`, `2`, `10`, `123456789012345678901234567890`,
		`""`, `"a"`, `"A"`, `"aa"`, `"b"`, `"B"`, `"ba"`, `"bb"`, `"foo"`, `"foo\ufff0"`,
		`[]`, `[null]`, `["a"]`, `["a",null]`, `["a",1]`, `["a",{}]`, `["b"]`, `["b",["c"]]`, `[{}]`,
		`{}`, `{"a":1}`, `{"a":2}`, `{"a":2,"b":1}`, `{"b":1}`, `{"b":2,"a":1}`, `{"b":2,"c":2}`,
	}
	for i := 1; i < len(values); i++ {
		if bytes.Compare(key(t, values[i-1]), key(t, values[i])) >= 0 {
			t.Errorf("%s should sort before %s", values[i-1], values[i])
		}
	}
	if bytes.Compare(key(t, values[len(values)-1]), []byte(MaxKey)) >= 0 {
		t.Error("MaxKey is not the greatest")
	}
}

func TestEqualValues(t *testing.T) {
	for _, pair := range [][2]string{
		{`0`, `-0.0`},
		{`1`, `1.0`},
		{`100`, `1e2`},
		{`"\u00e9"`, `"e\u0301"`},
		{` [1, 2] `, `[1,2]`},
		{`{"a": 1}`, `{"a":1.0}`},
		{`"a\u200b"`, `"a"`},
	} {
		if !bytes.Equal(key(t, pair[0]), key(t, pair[1])) {
			t.Errorf("%s and %s should be equal keys", pair[0], pair[1])
		}
	}
}

func TestNoJSON(t *testing.T) {
	for _, s := range []string{``, ` `, `"a`, `x`, `--1`} {
		if _, err := AppendKey(nil, []byte(s)); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

// TestContractionAcrossMarks has a letter and its breve with other marks between
// them. Up to maxMarks they sort as the letter with the breve first, as in ICU.
func TestContractionAcrossMarks(t *testing.T) {
	const letter, breve, dot, rest = "\u0418", "\u0306", "\u0323", "\u044f\u0301z"
	for _, n := range []int{0, 1, 30, maxMarks - 1} {
		dots := strings.Repeat(dot, n)
		got := AppendString(nil, letter+dots+breve+rest)
		if want := AppendString(nil, letter+breve+dots+rest); !bytes.Equal(got, want) {
			t.Errorf("%d marks between: %x, want %x", n, got, want)
		}
	}
	dots := strings.Repeat(dot, maxMarks)
	got := AppendString(nil, letter+dots+breve)
	if bytes.Equal(got, AppendString(nil, letter+breve+dots)) {
		t.Errorf("%d marks between do not keep the letter from its breve", maxMarks)
	}
}

// TestLongStrings has strings for which work in the square of their length
// would outlast the limit of the test binary many times.
func TestLongStrings(t *testing.T) {
	for name, s := range map[string]string{
		"of marks":        strings.Repeat("\u0f71", 600_000),
		"of contractions": strings.Repeat("\u0418\u0323\u0306", 2_000_000),
	} {
		if key := AppendString(nil, s); len(key) == 0 {
			t.Errorf("a string %s: no key", name)
		}
	}
}

func TestPrefixSortsFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.String().Draw(t, "a")
		b := a + rapid.StringN(1, 5, -1).Draw(t, "b")
		ka, kb := AppendString(nil, a), AppendString(nil, b)
		if bytes.IndexByte(ka, 0) >= 0 {
			t.Fatalf("a zero byte in the key of %q", a)
		}
		// a combining mark may make the longer string smaller than the shorter
		// with another letter, never smaller than the shorter itself, unless it
		// is ignorable
		if isASCII(b) && bytes.Compare(ka, kb) > 0 {
			t.Fatalf("%q sorts behind %q", a, b)
		}
	})
}

func FuzzAppendKey(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null]}`))
	f.Add([]byte(`"\ud83d"`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = AppendKey(nil, text) // must not panic
		_, _ = AppendRawKey(nil, text)
	})
}

// TestNoAllocation has strings without escapes, however long.
func TestNoAllocation(t *testing.T) {
	if testing.Short() {
		t.Skip("pools forget under the race detector, which runs the short tests")
	}
	for _, value := range []string{
		`"the quick brown fox jumps over the lazy dog and runs away"`, `"Été 2026: résumé déjà vu, naïve çà et là, tout le monde"`,
		`["2026","post",17,-12345,"a title"]`,
		`[1895131128281567233,-1895131128281567233]`,
	} {
		var dst []byte
		text := []byte(value)
		if n := testing.AllocsPerRun(100, func() { dst, _ = AppendKey(dst[:0], text) }); n > 0 {
			t.Errorf("%s: %v allocations", value, n)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	for name, value := range map[string]string{
		"ascii":     `"the quick brown fox jumps ov"`,
		"capitals":  `"The Quick Brown Fox jumps ov"`,
		"accented":  `"résumé déjà vu naïve çà et là"`,
		"array":     `["2026","post",17,"a title"]`,
		"number":    `1234567`,
		"snowflake": `1895131128281567233`,
		"vowels":    `"สวัสดีครับ ยินดีต้อนรับ เข้าสู่เว็บไซต์"`,
		"marks":     `"Й̣ and й̣ ཱིུ"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			text := []byte(value)
			var dst []byte
			for b.Loop() {
				dst, _ = AppendKey(dst[:0], text)
			}
		})
	}
}
