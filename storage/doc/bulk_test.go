package doc

import (
	"fmt"
	"testing"

	"divan/storage/fault"
)

// TestParseBulk checks that the documents are those that ParseEnvelope reads,
// wherever the other members stand.
func TestParseBulk(t *testing.T) {
	t.Parallel()
	const docs = `[ {"_id":"a","v":1} ,{}, { "_id" : "b" , "n" : [1e20,1e20,-0.0] },{"_deleted":true,"_rev":"1-x"}]`
	for _, text := range []string{
		`{"docs":` + docs + `}`,
		` { "docs" : ` + docs + ` , "w" : 2 } `,
		`{"w":2,"docs":` + docs + `,"new_edits":true}`,
		`{"docs":5,"docs":` + docs + `}`,
	} {
		b, err := ParseBulk([]byte(text), nil)
		if err != nil || len(b.Docs) != 4 || !b.NewEdits {
			t.Errorf("%s: %+v, %v", text, b, err)
			continue
		}
		got := ""
		for _, d := range b.Docs {
			got += fmt.Sprintf("%s %v %v %v %s;", d.ID, d.HasID, d.Rev, d.Deleted, d.Body)
		}
		const want = `a true 0- false {"v":1}; false 0- false {};b true 0- false {"n":[100000000000000000000.0,100000000000000000000.0,-0.0]}; false 1-x true {};`
		if got != want {
			t.Errorf("%s:\n%s\n%s", text, got, want)
		}
	}
	b, err := ParseBulk([]byte(`{"new_edits":false,"w":2,"\u0064ocs":[],"all_or_nothing":true}`), nil)
	if err != nil || b.NewEdits || len(b.Docs) != 0 || len(b.Others) != 2 || b.Others[0].Name != "w" || string(b.Others[0].Value) != "2" {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestParseBulkRefusals has the refused bodies of golden bulk/02.
func TestParseBulkRefusals(t *testing.T) {
	t.Parallel()
	const malformed = "invalid UTF-8 JSON"
	for _, c := range []struct {
		in     string
		kind   fault.Kind
		reason string
	}{
		{`{"doc": []}`, fault.BadRequest, "POST body must include `docs` parameter."},
		{`{}`, fault.BadRequest, "POST body must include `docs` parameter."},
		{`{"docs": null}`, fault.BadRequest, "`docs` parameter must be an array."},
		{`{"docs": {"_id": "a"}}`, fault.BadRequest, "`docs` parameter must be an array."},
		{`{"docs": "a"}`, fault.BadRequest, "`docs` parameter must be an array."},
		{`[{"_id": "a"}]`, fault.BadRequest, "Request body must be a JSON object"},
		{`5`, fault.BadRequest, "Request body must be a JSON object"},
		{``, fault.BadRequest, malformed},
		{`{"docs": [`, fault.BadRequest, malformed},
		{`{"docs": [}`, fault.BadRequest, malformed},
		{`{"docs": [{}}`, fault.BadRequest, malformed},
		{`{"docs": [{},]}`, fault.BadRequest, malformed},
		{`{"docs": [{} {}]}`, fault.BadRequest, malformed},
		{`{"docs": []} x`, fault.BadRequest, malformed},
		{`{"docs": [],}`, fault.BadRequest, malformed},
		{`{"docs" []}`, fault.BadRequest, malformed},
		{`{docs: []}`, fault.BadRequest, malformed},
		{`{"docs": [{"_foo": 1}, {"v": 1e309}]}`, fault.BadRequest, malformed},
		{`{"new_edits": "false", "docs": []}`, fault.BadRequest, "`new_edits` parameter must be a boolean."},
		{`{"new_edits": null, "docs": []}`, fault.BadRequest, "`new_edits` parameter must be a boolean."},
		{`{"docs": [{"_id": "a"}, 5]}`, fault.BadRequest, notObject},
		{`{"docs": [null]}`, fault.BadRequest, notObject},
		{`{"docs": [{"_id": "a"}, {"_id": 5}]}`, fault.IllegalDocID, "Document id must be a string"},
		{`{"docs": [{"_id": "a"}, {"_id": "_b"}, 5]}`, fault.IllegalDocID, "Only reserved document ids may start with underscore."},
		{`{"docs": [{"_id": "a", "_x": 1}]}`, fault.DocValidation, "Bad special document member: _x"},
		{`{"new_edits": false, "docs": [{"_id": "a", "_revisions": {"start": "x", "ids": []}}]}`, fault.DocValidation, "_revisions.start isn't an integer."},
	} {
		_, err := ParseBulk([]byte(c.in), nil)
		if !fault.Is(err, c.kind) || fault.Reason(err) != c.reason {
			t.Errorf("%s: %v; want %q", c.in, err, c.reason)
		}
	}
}

// TestEachMember covers the helpers for other request bodies.
func TestEachMember(t *testing.T) {
	t.Parallel()
	got := ""
	err := EachMember([]byte(" { \"a\" : [1, 2] ,\"\\u0062\":{\"c\":\"}\"},\"\":null,\"a\": -1.50e3 } "), func(name string, value []byte) error {
		got += name + "=" + string(value) + ";"
		return nil
	})
	if want := `a=[1, 2];b={"c":"}"};=null;a=-1.50e3;`; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	got = ""
	err = EachElement([]byte("[ 1 , \"x\\n\" ,[ ],{}\t]"), func(value []byte) error {
		got += string(value) + ";"
		return nil
	})
	if want := `1;"x\n";[ ];{};`; err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	stop := fault.New(fault.NotFound, "stop")
	if err := EachElement([]byte(`[1,2`), func([]byte) error { return stop }); !fault.Is(err, fault.NotFound) {
		t.Errorf("fn's error: %v", err)
	}
	if err := EachMember([]byte(`{"a":1,`), func(string, []byte) error { return stop }); !fault.Is(err, fault.NotFound) {
		t.Errorf("fn's error: %v", err)
	}
	for in, want := range map[string]string{
		`[]`: "Request body must be a JSON object", `"{}"`: "Request body must be a JSON object", `[] 1`: "invalid UTF-8 JSON",
		`{`: "invalid UTF-8 JSON", `{}}`: "invalid UTF-8 JSON", `{"a":1}{`: "invalid UTF-8 JSON", `{"a":1]`: "invalid UTF-8 JSON",
		`{"a":1,}`: "invalid UTF-8 JSON", `{"a",1}`: "invalid UTF-8 JSON", ``: "invalid UTF-8 JSON", `{"a":01}`: "invalid UTF-8 JSON",
		`{}`: "", ` { } `: "",
	} {
		if err := EachMember([]byte(in), func(string, []byte) error { return nil }); fault.Reason(err) != want || (err == nil) != (want == "") {
			t.Errorf("EachMember(%s): %v", in, err)
		}
	}
	for in, want := range map[string]string{
		`{}`: "Request body must be a JSON array", `{`: "invalid UTF-8 JSON", `[`: "invalid UTF-8 JSON", `[]]`: "invalid UTF-8 JSON",
		`[1,]`: "invalid UTF-8 JSON", `[1}`: "invalid UTF-8 JSON", `[]`: "", ` [ ] `: "",
	} {
		if err := EachElement([]byte(in), func([]byte) error { return nil }); fault.Reason(err) != want || (err == nil) != (want == "") {
			t.Errorf("EachElement(%s): %v", in, err)
		}
	}
}

// TestUnquote covers escapes and what is no string.
func TestUnquote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`""`: "", `"abc"`: "abc", `"a\"\\\/\b\f\n\r\tz"`: "a\"\\/\b\f\n\r\tz", `"\u00fc\ud83c\udf4bé\u0000"`: "ü🍋é\x00",
	} {
		if got, ok := Unquote([]byte(in)); !ok || got != want {
			t.Errorf("%s: %q, %v", in, got, ok)
		}
	}
	for _, in := range []string{``, `"`, `a`, `1`, `null`, `"a`, `"a\"`, `"a"b`, `"\x"`, `"\ud800"`, "\"\xff\"", "\"\n\"", ` "a"`, `"a" `, `"é"x`} {
		if got, ok := Unquote([]byte(in)); ok {
			t.Errorf("%q: %q", in, got)
		}
	}
}
