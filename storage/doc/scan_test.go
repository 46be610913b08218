package doc

import (
	"strings"
	"testing"

	"divan/storage/fault"
)

// TestCanonical holds the canonical form to what CouchDB printed in golden
// docs/08 and to the thresholds around it.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{`0`, `0`},
		{`-1`, `-1`},
		{`-0`, `0`},
		{`[-0,-0]`, `[0,0]`},
		{`123456789012345678901234567890`, `123456789012345678901234567890`},
		{`-123456789012345678901234567890`, `-123456789012345678901234567890`},
		{`0.5`, `0.5`},
		{`0.3333333333333333`, `0.3333333333333333`},
		{`3.141592653589793`, `3.141592653589793`},
		{`1.0`, `1.0`},
		{`1.50`, `1.5`},
		{`-2.25`, `-2.25`},
		{`100.0`, `100.0`},
		{`100.00`, `100.0`},
		{`10.10`, `10.1`},
		{`0.000001`, `0.000001`},
		{`0.0000001`, `1e-7`},
		{`0.00000012`, `1.2e-7`},
		{`-0.0`, `0.0`},
		{`0.0`, `0.0`},
		{`0.00`, `0.0`},
		{`1e3`, `1000.0`},
		{`1E3`, `1000.0`},
		{`1e+3`, `1000.0`},
		{`1.5e10`, `15000000000.0`},
		{`1e20`, `100000000000000000000.0`},
		{`1e21`, `1e+21`},
		{`1e22`, `1e+22`},
		{`1.25e22`, `1.25e+22`},
		{`1e-5`, `0.00001`},
		{`1e-6`, `0.000001`},
		{`9.5e-7`, `9.5e-7`},
		{`1e-7`, `1e-7`},
		{`2.5e-10`, `2.5e-10`},
		{`1.7976931348623157e308`, `1.7976931348623157e+308`},
		{`1e100`, `1e+100`},
		{`-1e16`, `-10000000000000000.0`},
		{`1e15`, `1000000000000000.0`},
		{`5e-324`, `5e-324`},
		{`1e-400`, `0.0`},
		{`-1e-400`, `0.0`},
		{`999999999999999999999.5`, `1e+21`},
		{`123456789012345.5`, `123456789012345.5`},
		{`0.1234567890123456789`, `0.12345678901234568`},
		{`"\" \\ \/ \b \f \n \r \t"`, `"\" \\ / \b \f \n \r \t"`},
		{`"\u00e9 \u20ac \u4e2d"`, `"é € 中"`},
		{`"\ud83c\udf4b"`, `"🍋"`},
		{`"é € 中 🍋"`, `"é € 中 🍋"`},
		{`"\u0001\u001f\u001F"`, `"\u0001\u001F\u001F"`},
		{`"\u007f\u2028"`, "\"\x7f\u2028\""},
		{`"a\u0000b"`, `"a\u0000b"`},
		{`"\u000a\u0009\u0008\u000C\u000d"`, `"\n\t\b\f\r"`},
		{`"\u0022\u005c\u002f"`, `"\"\\/"`},
		{`"<a href='x'>&</a>"`, `"<a href='x'>&</a>"`},
		{`"\uffff\ufffe"`, "\"\uffff\ufffe\""},
		{"\t[ [ ] , { } ,\r\n[ [ [ ] ] ] , null ] ", `[[],{},[[[]]],null]`},
		{`{ "z" : 1 , "a" : 2 ,	"m" : { "y" : 1 , "b" : 2 } , "" : "empty name" }`, `{"z":1,"a":2,"m":{"y":1,"b":2},"":"empty name"}`},
		{`{"a":true,"b":false,"c":null,"\u0061":[1.50,"\/"]}`, `{"b":false,"c":null,"a":[1.5,"/"]}`},
		{`[1,1.0e0,"x",-0.0,[{"a":-0}]]`, `[1,1.0,"x",0.0,[{"a":0}]]`},
	} {
		got, err := Canonical([]byte("before"), []byte(c.in))
		if err != nil || string(got) != "before"+c.want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", c.in, got, err, c.want)
		}
	}
}

// TestCanonicalRefuses lists texts that are no JSON.
func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, ` `, `1e309`, `-1e309`, `012`, `-012`, `+1`, `1.`, `.5`, `-`, `-.5`, `1e`, `1e+`, `1.e3`, `NaN`, `Infinity`, `0x10`,
		"\"a\x01b\"", "\"a\x09c\"", "\"\xff\xfe\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"",
		`"\ud800"`, `"\udc00"`, `"\ud800\ud800"`, `"\ud800x"`, `"\ud800\n"`, `"\x"`, `"\u12"`, `"\u12g4"`, `"`, `"\`, `"abc`, `"\"`,
		`{"a": 1,}`, `{"a": 1} x`, `{"a": 1 /* one */}`, `{'a': 1}`, `{a: 1}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{,}`, `{"a":1 "b":2}`,
		`[`, `]`, `[1`, `[1,]`, `[,1]`, `[1 2]`, `[}`, `{]`, `{"a":[}`, `[[1]`, `[1]]`, `tru`, `nul`, `truefalse`, `hello`, "\x00", "[1,\x00]", "\ufeff1",
	} {
		got, err := Canonical(nil, []byte(in))
		if !fault.Is(err, fault.BadRequest) || fault.Reason(err) != "invalid UTF-8 JSON" {
			t.Errorf("Canonical(%q) = %s, %v", in, got, err)
		}
	}
}

// TestDepth checks the limit at its border.
func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if got, err := Canonical(nil, nested(MaxDepth)); err != nil || len(got) != 2*MaxDepth {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if _, err := Canonical(nil, nested(MaxDepth+1)); fault.Reason(err) != "JSON is nested more than 1000 levels deep" {
		t.Errorf("depth %d: %v", MaxDepth+1, err)
	}
	inDoc := func(n int) []byte { return []byte(`{"a":` + string(nested(n)) + `}`) }
	if _, err := ParseEnvelope(inDoc(MaxDepth - 1)); err != nil {
		t.Errorf("document of depth %d: %v", MaxDepth, err)
	}
	if _, err := ParseEnvelope(inDoc(MaxDepth)); !fault.Is(err, fault.BadRequest) {
		t.Errorf("document of depth %d: %v", MaxDepth+1, err)
	}
}
