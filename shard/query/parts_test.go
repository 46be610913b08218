package query

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/collate"
	"divan/storage/doc"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "null", `true`: "true", `"n"`: "<<110>>", `""`: "<<>>", `"é"`: "<<195,169>>", `"\n"`: "<<10>>",
		`[]`: "[]", `[[],[[]],1]`: "[[],[[]],1]", `{}`: "{[]}", `{"n":1}`: "{[{<<110>>,1}]}",
		`[{"n":1},{"a":[],"b":null}]`: "[{[{<<110>>,1}]},{[{<<97>>,[]},{<<98>>,null}]}]",
		`1.5`:                         "1.5", `-3.25`: "-3.25", `0.0`: "0.0", `100.0`: "100.0", `1000.0`: "1.0e3", `100000.0`: "1.0e5", `123456.0`: "123456.0",
		`1e300`: "1.0e300", `1.25e-7`: "1.25e-7", `0.001`: "0.001", `0.0625`: "0.0625", `1e22`: "1.0e22", `12345678901234567890`: "12345678901234567890",
	} {
		canonical, err := doc.Canonical(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := term(canonical); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	long := `["` + strings.Repeat("x", 1<<20) + `","y"]`
	if got := term([]byte(long)); len(got) > maxTerm+3 || !strings.HasSuffix(got, "...") {
		t.Errorf("a long term prints as %d bytes", len(got))
	}
}

func TestPlainOrderIsThatOfCollate(t *testing.T) {
	ascii := rapid.StringOfN(rapid.RuneFrom([]rune(" aAbBzZ019_-.\"~$|@[]{}")), 0, 6, -1)
	any95 := rapid.StringOfN(rapid.Map(rapid.IntRange(' ', '~'), func(i int) rune { return rune(i) }), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(ascii, any95).Draw(t, "x")
		y := rapid.OneOf(ascii, any95, rapid.Just(x), rapid.Just(strings.ToUpper(x))).Draw(t, "y")
		a, b := doc.AppendString(nil, x), doc.AppendString(nil, y)
		if !plain(a) || !plain(b) {
			return // a quote or a backslash in it
		}
		want := bytes.Compare(collate.AppendString(nil, x), collate.AppendString(nil, y))
		if got := comparePlain(a, b); got != want {
			t.Fatalf("%s against %s: %d, want %d", a, b, got, want)
		}
	})
	for c := byte(' '); c <= '~'; c++ {
		for d := byte(' '); d <= '~'; d++ {
			want := bytes.Compare(collate.AppendString(nil, string(c)), collate.AppendString(nil, string(d)))
			if got := comparePlain([]byte{'"', c, '"'}, []byte{'"', d, '"'}); got != want {
				t.Errorf("%c against %c: %d, want %d", c, d, got, want)
			}
		}
	}
	for _, text := range []string{`"\u0001"`, `"\\"`, `"é"`, "\"\x7f\"", `"`, ``} {
		if plain([]byte(text)) {
			t.Errorf("%q is plain", text)
		}
	}
}

func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,8}(e[+-]?[0-9]{1,2})?)?`).Draw(t, "number")
		want, _ := strconv.ParseFloat(text, 64)
		got := number([]byte(text))
		if got.double != want {
			t.Fatalf("%s: %v, want %v", text, got.double, want)
		}
		i, isInt := new(big.Int).SetString(text, 10)
		if exact := !isInt || new(big.Float).SetInt(i).Cmp(big.NewFloat(want)) == 0; exact != (got.digits == nil) {
			t.Fatalf("%s is a double: %v", text, exact)
		}
	})
	if !math.IsInf(number([]byte("-1"+strings.Repeat("0", 400))).double, -1) {
		t.Error("a number beyond all doubles is not infinite")
	}
}

// TestNumbersAsErlang has numbers of which many have the same double.
func TestNumbersAsErlang(t *testing.T) {
	beyond := "1" + strings.Repeat("0", 400)
	ascending := []string{
		"-" + beyond, "-1.7976931348623157e308", "-99999999999999991611393", "-1.0e23", "-99999999999999991611391", "-18446744073709551617",
		"-1895131128281567233", "-1895131128281567232", "-9007199254740993", "-9007199254740992.0", "-9007199254740991", "-0.5", "0", "1", "1.5",
		"9007199254740991", "9007199254740992.0", "9007199254740993", "9007199254740994.0", "9007199254740995", "1895131128281567232", "1895131128281567233",
		"9999999999999999999", "10000000000000000000.0", "10000000000000000001", "18446744073709551615", "18446744073709551616.0", "18446744073709551617",
		"99999999999999991611391", "1.0e23", "99999999999999991611393", "1.7976931348623157e308", beyond, beyond[:400] + "1", beyond + "0",
	}
	w := NewWork(t.Context(), nil)
	for i, a := range ascending {
		for j, b := range ascending {
			l, err := newLiteral([]byte(a))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := w.compare(&l, []byte(b), false), cmp.Compare(j, i); got != want {
				t.Errorf("%.30s to %.30s is %d, want %d", b, a, got, want)
			}
			set, err := newSet([]byte("[" + a + "]"))
			if err != nil {
				t.Fatal(err)
			}
			if got := w.member(set, []byte(b), false); got != (i == j) {
				t.Errorf("%.30s is in [%.30s]: %v", b, a, got)
			}
			if got := sameTerm([]byte("["+a+"]"), []byte("["+b+"]")); got != (i == j) {
				t.Errorf("[%.30s] is the term [%.30s]: %v", b, a, got)
			}
		}
	}
	for _, pair := range [][2]string{{"9007199254740992", "9007199254740992.0"}, {"10000000000000000000", "10000000000000000000.0"}, {"99999999999999991611392", "1.0e23"}} {
		if compareNumbers(number([]byte(pair[0])), number([]byte(pair[1]))) != 0 {
			t.Errorf("%s is not %s", pair[0], pair[1])
		}
	}
}

func TestSplitField(t *testing.T) {
	for field, want := range map[string][]string{
		`a`: {"a"}, `a.b.c`: {"a", "b", "c"}, `a\.b`: {"a.b"}, `a\.b.c`: {"a.b", "c"}, `\$x`: {"$x"}, `\`: {""},
		`a\\.b`: {"a.b"}, `a.\.`: {"a", "."}, `é.0`: {"é", "0"},
		``: nil, `.`: nil, `a.`: nil, `.a`: nil, `a..b`: nil,
	} {
		names, err := splitField(field)
		if (err != nil) != (want == nil) || !slices.Equal(names, want) {
			t.Errorf("%s: %q %v, want %q", field, names, err, want)
		}
	}
}

// TestScan compares what the scans see in canonical text with what doc sees.
func TestScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := doc.Canonical(nil, encode(nil, genObject(4).Draw(t, "object")))
		if err != nil {
			t.Fatal(err)
		}
		scanned := members{text: text}
		if err := doc.EachMember(text, func(name string, value []byte) error {
			if !scanned.next() || string(scanned.name) != string(doc.AppendString(nil, name)) || !bytes.Equal(scanned.value, value) {
				t.Fatalf("%s: %s:%s instead of %q:%s", text, scanned.name, scanned.value, name, value)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if scanned.next() {
			t.Fatalf("%s: another member %s", text, scanned.name)
		}
	})
}

func TestSkipString(t *testing.T) {
	for n := range 40 {
		for _, inner := range []string{"", `\"`, `\\`, `\\\"`, `"`} {
			text := `"` + strings.Repeat("x", n) + inner + `yy",`
			want := len(text) - 1
			if inner == `"` {
				want = n + 2
			}
			if got := skipString([]byte(text), 0); got != want {
				t.Errorf("%s: %d, want %d", text, got, want)
			}
		}
		if got := skipString([]byte(`"`+strings.Repeat("x", n)), 0); got != n+1 {
			t.Errorf("without end: %d, want %d", got, n+1)
		}
	}
}

func TestRegex(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{`pie$`, "pie\n", true},
		{`pie$`, "pie\n\n", false},
		{`pie$`, "pies", false},
		{`pie\z`, "pie\n", false},
		{`(?m)a$`, "a\nb", true},
		{`^a$|^b$`, "b\n", true},
		{`a[$]b`, "a$b", true},
		{`[^]$]`, "]$", false},
		{`[]$]`, "$", true},
		{`[[:alpha:]$]$`, "$", true},
		{`[\]$]`, "$", true},
		{`\$5`, "$5", true},
		{`\Q$5.\E$`, "$5.", true},
		{`(?#cost in $)a$`, "a\n", true},
		{`[[:a]$`, ":", true},
		{`^(?=.*\d)(?=.*[a-z]).{4,}$`, "abc1", true},
		{`^(?=.*\d)(?=.*[a-z]).{4,}$`, "abcd", false},
		{`(?=.*[[:digit:]])x$`, "x1", false},
		{`(?=x)x$`, "x\n", true},
		{`(\w)\1`, "hello", true},
		{`(\w)\1`, "helo", false},
		{`(?<!a)b`, "ab", false},
		{`(?>a+)b`, "aab", true},
		{`(?i)ÄPFEL`, "äpfel", true},
		{`a{1,2000}b`, "aab", true},
		{`(?=a)(?:[{]a{1,3}[)]?){1,2000}b`, `{a{aab`, false},
		{`(?=[{])(?:[{]a{1,3}[)]?){1,2000}b`, `{a{aab`, true},
		{`(?x) a b # c`, "ab", true},
		{``, "", true},
		{`.`, "\n", false},
		{`(?s).`, "\n", true},
	} {
		p, ok := compile(c.pattern)
		if !ok {
			t.Errorf("%s: refused", c.pattern)
			continue
		}
		if got := p.matches(doc.AppendString(nil, c.text)); got != c.want {
			t.Errorf("%s in %q: %v", c.pattern, c.text, got)
		}
	}
	for _, bad := range []string{`[a`, `(`, `a)`, `(a{1000}){1000}`, `(?=a)(?:a{0,300}){300}`, `(?=a)a{99999999999999999999}`, `*`, `(?<n`, `\1`, `[[:nope:]]`} {
		if _, ok := compile(bad); ok {
			t.Errorf("%s: taken", bad)
		}
	}
}

func TestSetOfEveryKind(t *testing.T) {
	s, err := newSet([]byte(`[null,1,"a","é",[1],{"k":1.0}]`))
	if err != nil {
		t.Fatal(err)
	}
	w := NewWork(t.Context(), nil)
	w.begin()
	for text, want := range map[string]bool{
		`null`: true, `false`: false, `true`: false, `1`: true, `1.0`: true, `2`: false, `"a"`: true, `"A"`: false,
		`"a\u0001"`: true, `"é"`: true, `"e"`: false, `[1.0]`: true, `[]`: false, `{"k":1}`: true, `{}`: false,
	} {
		if got := w.member(s, []byte(text), false); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if w.member(s, []byte(`"a\u0001"`), true) {
		t.Error("ids that only collate alike are equal")
	}
}

func TestCompareBytes(t *testing.T) {
	texts := []string{"", "\x01", "!", `"`, "A", `\`, "a", "a\n", "é"}
	for i, x := range texts {
		for j, y := range texts {
			if got := compareBytes(doc.AppendString(nil, x), doc.AppendString(nil, y)); got != cmp.Compare(i, j) {
				t.Errorf("%q against %q: %d", x, y, got)
			}
		}
	}
}

func TestOnce(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2,"a":3}`:                       `{"a":3,"b":2}`,
		`{"a":{"x":1,"x":2},"a":{"y":1,"y":[1,2]}}`: `{"a":{"y":[1,2]}}`,
		`[{"a":1},{"a":1,"a":[]},"{"]`:              `[{"a":1},{"a":[]},"{"]`,
		`[[{"a":{"a":{"a":0,"a":"}"}}}],1]`:         `[[{"a":{"a":{"a":"}"}}}],1]`,
		`{"":null,"\"":{},"":{}}`:                   `{"":{},"\"":{}}`,
		`{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"0":0,"1":1,"9":[],"x":0,"x":1}`: `{"1":1,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":[],"0":0,"x":1}`,
	} {
		if got := string(Once([]byte(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{``, `"{"`, `{}`, `[]`, `[{},[]]`, `{"a":{"a":{"a":1}},"b":{"a":1}}`, `[1,"{",{"k":[{"k":1}]}]`} {
		if got := Once([]byte(text)); string(got) != text {
			t.Errorf("%s: %s", text, got)
		}
	}
	// Text that is no JSON means nothing and does no harm.
	for _, text := range []string{`{`, `{"`, `{"a`, `{"a"`, `{"a":`, `[{"a":1,"a"`, `[{`, `{"a":1,"a":{`, `{{"a":1,"a":2}`, `]{`, `{"a":1]"a":2}`} {
		Once([]byte(text))
	}
}

func FuzzOnce(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[],"c":"x"},"a":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		Once(text) // must not panic
		canonical, err := doc.Canonical(nil, text)
		if err != nil {
			return
		}
		want := encode(nil, single(decode(t, canonical)))
		if got := Once(canonical); string(got) != string(want) {
			t.Fatalf("%s: %s, want %s", canonical, got, want)
		}
	})
}
