package doc

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRevisionVectors holds ids to those of a CouchDB 3.5.0.
func TestRevisionVectors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                       "967a00dff5e02add41819138abb3284d",
		`{"still":"here"}`:         "0bea212bcd300c553585fe8cb69c0442",
		`{"partitioned_doc":true}`: "43d86359741cb629c0953a2beb6e9d7a",
		`{"a":1,"b":255,"c":256,"d":-1,"e":2147483647,"f":2147483648,"g":-2147483649,"h":123456789012345678901234567890}`: "e04bfe860ff6f1a5df2321f5070e093b",
		`{"a":1.0,"b":1e5,"c":0.1,"d":-0.0,"e":1.5e300,"f":1E2,"g":100}`:                                                  "6abb8a96938dd05ca2341f7e87072118",
		`{"t":true,"f":false,"n":null,"s":"","u":"h\u00e9 \ud83d\ude00","e":"\u0041\/"}`:                                  "5640e1bd5e8356932562de3835c557ca",
		`{"l":[],"m":[1,2,3],"o":[300,1],"p":["a",{"q":{}}],"s":[0,255]}`:                                                 "173293da0814b24482ffdff4883b10cf",
		`{"a":1,"a":2,"b":3}`:          "d76c74eb7f5aa9bbe9f01ebde895887c",
		`{"a":2,"b":3}`:                "d76c74eb7f5aa9bbe9f01ebde895887c",
		`{"z":1,"a":{"y":1,"b":[{}]}}`: "663beef3c09ce74b37898ddcc6a72a89",
		`{"n":[1,2,3,4.0]}`:            "c0345049b853531d293ecd9d216e4f29",
		`{"k":18446744073709551616,"m":-18446744073709551616}`: "6662eebee900dd701aa2eb0fd0c91a29",
		`{"_id":"x","v":1}`: "7a7e4b29f3af401e69b6f86e4c26b727",
	} {
		e, err := ParseEnvelope([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString([]byte(NewRevID(false, Rev{}, e.Body, nil))); got != want {
			t.Errorf("%s: 1-%s, want 1-%s", text, got, want)
		}
		b, err := ParseBulk([]byte(`{"docs":[`+text+`]}`), nil)
		if err != nil || !bytes.Equal(b.Docs[0].Body, e.Body) {
			t.Errorf("%s: in bulk %s, want %s (%v)", text, b.Docs[0].Body, e.Body, err)
		}
	}
}

// TestStoredBody checks that only zeros lose their sign.
func TestStoredBody(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":[-0.0,-0e7,-1e-400,-0,-10.0,-0.05],"b":"-0.0"}`: `{"a":[0.0,0.0,0.0,0,-10.0,-0.05],"b":"-0.0"}`,
		`{"a":0.0}`: `{"a":0.0}`,
	} {
		e, err := ParseEnvelope([]byte(in))
		if got := StoredBody(e.Body); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// appendReference writes the term of the next value that d reads: from tokens,
// with everything copied, and with counts taken from finished lists.
func appendReference(t *testing.T, dst []byte, d *json.Decoder) []byte {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			var elements [][]byte
			for d.More() {
				elements = append(elements, appendReference(t, nil, d))
			}
			_, _ = d.Token()
			return append(dst, referenceList(elements)...)
		}
		var members [][]byte
		places := make(map[string]int)
		for d.More() {
			name, _ := d.Token()
			text := name.(string)
			tuple := append([]byte{104, 2, 109}, binary.BigEndian.AppendUint32(nil, uint32(len(text)))...)
			tuple = appendReference(t, append(tuple, text...), d)
			if at, ok := places[text]; ok {
				members[at] = tuple
				continue
			}
			places[text] = len(members)
			members = append(members, tuple)
		}
		_, _ = d.Token()
		return append(append(dst, 104, 1), referenceList(members)...)
	case string:
		return append(binary.BigEndian.AppendUint32(append(dst, 109), uint32(len(v))), v...)
	case json.Number:
		return append(dst, referenceNumber(string(v))...)
	case bool:
		word := strconv.FormatBool(v)
		return append(append(dst, 100, 0, byte(len(word))), word...)
	}
	return append(dst, "\x64\x00\x04null"...)
}

func referenceList(elements [][]byte) []byte {
	if len(elements) == 0 {
		return []byte{106}
	}
	small := func(e []byte) bool { return len(e) == 2 && e[0] == 97 }
	if len(elements) < 1<<16 && !slices.ContainsFunc(elements, func(e []byte) bool { return !small(e) }) {
		out := binary.BigEndian.AppendUint16([]byte{107}, uint16(len(elements)))
		for _, e := range elements {
			out = append(out, e[1])
		}
		return out
	}
	out := binary.BigEndian.AppendUint32([]byte{108}, uint32(len(elements)))
	return append(append(out, bytes.Join(elements, nil)...), 106)
}

func referenceNumber(text string) []byte {
	if strings.ContainsAny(text, ".eE") {
		f, _ := strconv.ParseFloat(text, 64)
		return binary.BigEndian.AppendUint64([]byte{70}, math.Float64bits(f))
	}
	n, _ := new(big.Int).SetString(text, 10)
	switch {
	case n.Sign() >= 0 && n.BitLen() <= 8:
		return []byte{97, byte(n.Uint64())}
	case n.IsInt64() && n.Int64() == int64(int32(n.Int64())):
		return binary.BigEndian.AppendUint32([]byte{98}, uint32(n.Int64()))
	}
	size := (n.BitLen() + 7) / 8
	head := []byte{110, byte(size)}
	if size > 255 {
		head = binary.BigEndian.AppendUint32([]byte{111}, uint32(size))
	}
	digits := n.FillBytes(make([]byte, size))
	slices.Reverse(digits)
	return append(append(head, byte((1-n.Sign())/2)), digits...)
}

// checkTerm holds the term of a document, and the id of its first revision, to
// the reference.
func checkTerm(t *testing.T, body []byte) {
	t.Helper()
	term := appendTerm(nil, body)
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	want := appendReference(t, nil, d)
	if !bytes.Equal(term, want) {
		t.Fatalf("%.200q\n%.400x, want\n%.400x", body, term, want)
	}
	whole := append([]byte("\x83l\x00\x00\x00\x05d\x00\x05falsea\x00a\x00"), want...)
	sum := md5.Sum(append(whole, "jj"...))
	if got := NewRevID(false, Rev{}, body, nil); got != string(sum[:]) {
		t.Fatalf("%.200q: %x, want %x", body, got, sum)
	}
}

// TestTermLimits walks along the borders of the format.
func TestTermLimits(t *testing.T) {
	t.Parallel()
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	object := func(names ...int) string {
		var b strings.Builder
		for i, n := range names {
			fmt.Fprintf(&b, `,"name%d":{"x":%d}`, n, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	many := make([]int, 3*manyNames)
	for i := range many {
		many[i] = i
	}
	for _, v := range []string{
		list(65535, "7"), list(65536, "7"), list(3, "[]"), `[[],[],true]`, `[97,[],[]]`, list(4, "256"), `[97,97.0]`,
		"9" + strings.Repeat("0", 613), "1" + strings.Repeat("0", 616), "-" + strings.Repeat("8", 70000),
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "999999999999999999",
		"-128", "4294967295", "4294967296", "-2147483648", "-4294967296",
		strings.Repeat("[", 990) + strings.Repeat("]", 990), strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900),
		object(1, 2, 1, 3, 2, 1), object(many...), object(append(many, many[:manyNames]...)...), object(append(many, 7)...),
		`{"":1,"":{"a":[],"a":{}},"\u0001":2,"\"":3,"\\":4,"\"":5}`, `"` + strings.Repeat(`é\n`, 5000) + `"`,
	} {
		e, err := ParseEnvelope([]byte(`{"v":` + v + `}`))
		if err != nil {
			t.Fatalf("%.100s: %v", v, err)
		}
		checkTerm(t, e.Body)
	}
}

// jsonText draws a JSON value, spelled in some way.
func jsonText(depth int) *rapid.Generator[string] {
	scalar := rapid.OneOf(
		rapid.SampledFrom([]string{"true", "false", "null", "[]", "{}", `""`, "-0", "-0.0", "1e5", "1E-7", `"\u00e9\/\ud83d\ude00\n"`}),
		rapid.Map(rapid.Int64(), func(n int64) string { return strconv.FormatInt(n, 10) }),
		rapid.Map(rapid.Byte(), func(n byte) string { return strconv.Itoa(int(n)) }),
		rapid.StringMatching(`-?[1-9][0-9]{0,40}`),
		rapid.Map(rapid.Float64(), func(f float64) string { return strconv.FormatFloat(f, 'e', -1, 64) }),
		rapid.Map(rapid.String(), func(s string) string { return string(AppendString(nil, s)) }),
	)
	if depth == 0 {
		return scalar
	}
	inner := jsonText(depth - 1)
	return rapid.OneOf(scalar, scalar,
		rapid.Map(rapid.SliceOf(inner), func(e []string) string { return "[" + strings.Join(e, ", ") + "]" }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 9), func(e []byte) string {
			return strings.Join(strings.Fields(string(fmt.Append(nil, e))), ",")
		}),
		rapid.Custom(func(t *rapid.T) string {
			var members []string
			for range rapid.IntRange(1, 40).Draw(t, "members") {
				name := rapid.SampledFrom([]string{"a", "b", "", "long name", "longer name", `\u0061`, "é", `\"`}).Draw(t, "name") +
					rapid.SampledFrom([]string{"", "1", "2", "3", "4", "5", "6", "7", "8"}).Draw(t, "more")
				members = append(members, `"`+name+`":`+inner.Draw(t, "value"))
			}
			return "{" + strings.Join(members, ",") + "}"
		}),
	)
}

// TestTerm holds the terms of random documents to the reference.
func TestTerm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := `{"v":` + jsonText(3).Draw(r, "value") + `}`
		e, err := ParseEnvelope([]byte(text))
		if err != nil {
			r.Fatalf("%q: %v", text, err)
		}
		checkTerm(t, e.Body)
	})
}

// FuzzTerm checks that no bytes make the writer of terms panic, and holds the
// terms of documents to the reference.
func FuzzTerm(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
		f.Add([]byte(`{"v":` + s + `,"v":[` + s + `]}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		NewRevID(true, Rev{Pos: 1, ID: "x"}, text, nil)
		if e, err := ParseEnvelope(text); err == nil {
			checkTerm(t, e.Body)
		}
	})
}
