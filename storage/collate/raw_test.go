package collate

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rawKey(t *testing.T, value string) []byte {
	t.Helper()
	k, err := AppendRawKey(nil, []byte(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return k
}

func TestRawOrder(t *testing.T) {
	// Each is less than the next; the order of CouchDB (golden views/10).
	values := []string{
		`-1`, `0.5`, `1`, `2`, `3.0`, `4`, `1e10`,
		`false`, `null`, `true`,
		`{}`, `{"A":1}`, `{"a":1}`, `{"a":1,"b":1}`, `{"a":2}`, `{"a":null}`, `{"b":1}`, `{"b":2}`, `{"b":2,"a":1}`, `{"b":2,"c":2}`, `{"é":1}`,
		`[]`, `[null]`, `[{}]`, `[[]]`, `["a"]`, `["a","b"]`, `["b"]`, `["b","c"]`, `["b","c","a"]`, `["b","d"]`,
		`""`, `"\u0000"`, `"\u0000\u0000"`, `"\u0000a"`, `" "`, `"-x"`, `"1"`, `"10"`, `"2"`, `"A"`, `"AB"`, `"Ab"`, `"B"`, `"E"`, `"_x"`,
		`"a"`, `"a\u0000"`, `"a\u0001"`, `"a b"`, `"a-b"`, `"aB"`, `"a_b"`, `"aa"`, `"ab"`, `"b"`, `"ba"`, `"bb"`, `"e"`, `"f"`, `"ss"`, `"z"`, `"~"`,
		`"É"`, `"ß"`, `"ä"`, `"é"`, `"ω"`, `"ж"`, `"日"`, `"😀"`,
	}
	for i := 1; i < len(values); i++ {
		for j := range i {
			if bytes.Compare(rawKey(t, values[j]), rawKey(t, values[i])) >= 0 {
				t.Errorf("%s should sort before %s", values[j], values[i])
			}
		}
	}
	if bytes.Compare(rawKey(t, values[len(values)-1]), []byte(MaxKey)) >= 0 {
		t.Error("MaxKey is not the greatest")
	}
}

func TestRawEqual(t *testing.T) {
	for _, pair := range [][2]string{{`0`, `-0.0`}, {`1`, `1.0`}, {` [1, "\u0061"] `, `[1,"a"]`}} {
		if !bytes.Equal(rawKey(t, pair[0]), rawKey(t, pair[1])) {
			t.Errorf("%s and %s should be equal keys", pair[0], pair[1])
		}
	}
	for _, s := range []string{``, ` `, `"a`, `x`, `--1`, `[1`, `{"a"}`} {
		if _, err := AppendRawKey(nil, []byte(s)); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

// value draws a JSON value without superfluous space.
func value(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 3
		if depth > 0 {
			kinds = 5
		}
		switch rapid.IntRange(0, kinds).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "atom")
		case 1:
			return rapid.OneOf(rapid.Map(rapid.IntRange(-3, 300), strconv.Itoa), numberText()).Draw(t, "number")
		case 2, 3:
			return rapid.SampledFrom([]string{`""`, `"a"`, `"B"`, `"\u0000"`, `"\u0000\u00ff"`, `"ÿ"`, `"\u0001"`, `"é"`}).Draw(t, "string")
		case 4:
			return "[" + strings.Join(rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "array"), ",") + "]"
		default:
			var members []string
			for i, v := range rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "object") {
				members = append(members, strconv.Quote(string(rune('a'+i)))+":"+v)
			}
			return "{" + strings.Join(members, ",") + "}"
		}
	})
}

// TestPrefix says that keys of arrays have the same prefix when their first
// elements have the same keys, and only then.
func TestPrefix(t *testing.T) {
	for name, appendKey := range map[string]func(dst, value []byte) ([]byte, error){"icu": AppendKey, "raw": AppendRawKey} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				draw := func(name string) []string { return rapid.SliceOfN(value(2), 0, 4).Draw(t, name) }
				keyOf := func(elements []string) []byte {
					k, err := appendKey(nil, []byte("["+strings.Join(elements, ",")+"]"))
					if err != nil {
						t.Fatal(err)
					}
					return k
				}
				n := rapid.IntRange(1, 4).Draw(t, "n")
				a, b := draw("a"), draw("b")
				if rapid.Bool().Draw(t, "common") {
					b = append(slices.Clone(a[:min(len(a), n)]), b...)
				}
				same := bytes.Equal(keyOf(a[:min(n, len(a))]), keyOf(b[:min(n, len(b))]))
				if got := bytes.Equal(Prefix(keyOf(a), n), Prefix(keyOf(b), n)); got != same {
					t.Fatalf("the same to %d elements is %v, want %v", n, got, same)
				}
				if len(a) < n && !bytes.Equal(Prefix(keyOf(a), n), keyOf(a)) {
					t.Fatal("a shorter array is not its own prefix")
				}
				if c := bytes.Compare(keyOf(a), keyOf(b)); c*bytes.Compare(Prefix(keyOf(a), n), Prefix(keyOf(b), n)) < 0 {
					t.Fatal("prefixes are in another order")
				}
			})
			for _, v := range []string{`null`, `1`, `"a"`, `{"a":1}`} {
				k, err := appendKey(nil, []byte(v))
				if err != nil || !bytes.Equal(Prefix(k, 1), k) {
					t.Errorf("the prefix of %s is another: %v", v, err)
				}
			}
		})
	}
}

func FuzzPrefix(f *testing.F) {
	f.Add([]byte("\x06\x05abc\x00\x04"), byte(2))
	f.Add([]byte("\x15\x16a\x00\xffb\x00\x00"), byte(1))
	f.Fuzz(func(t *testing.T, key []byte, n byte) {
		if p := Prefix(key, 1+int(n)); !bytes.HasPrefix(key, p) {
			t.Fatalf("%x is no prefix of %x", p, key)
		}
	})
}
