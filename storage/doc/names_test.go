package doc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Of members of one name the last one stays, at its place, wherever the object is.
func TestLastMembers(t *testing.T) {
	t.Parallel()
	many := &strings.Builder{}
	for i := range 2 * manyNames {
		fmt.Fprintf(many, `,"k%d":0`, i)
	}
	for in, want := range map[string]string{
		`{"a":1,"b":0,"a":2}`:                              `{"b":0,"a":2}`,
		`{"a":1,"a":2,"a":3}`:                              `{"a":3}`,
		`{"a":1,"\u0061":2}`:                               `{"a":2}`,
		`{"n":{"k":1,"k":2},"l":[{"x":1,"x":[]},[{}]]}`:    `{"n":{"k":2},"l":[{"x":[]},[{}]]}`,
		`{"a":{"b":1,"b":2},"c":3,"a":{"d":-0.0,"d":1e3}}`: `{"c":3,"a":{"d":1000.0}}`,
		` { "" : 1 , "" : 2 } `:                            `{"":2}`,
		`{"x":1` + many.String() + `,"x":2}`:               `{` + many.String()[1:] + `,"x":2}`,
		`{"x":{"a":1},"y":{"a":1},"a":[{"a":1},{"a":1}]}`:  `{"x":{"a":1},"y":{"a":1},"a":[{"a":1},{"a":1}]}`,
	} {
		got, err := Canonical(nil, []byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%.80s: %.80s, %v", in, got, err)
		}
		env, err := ParseEnvelope([]byte(in))
		if err != nil || string(env.Body) != want {
			t.Errorf("%.80s: body %.80s, %v", in, env.Body, err)
		}
		bulk, err := ParseBulk([]byte(`{"docs":[{"z":1},`+in+`,{"z":2}]}`), nil)
		if err != nil || len(bulk.Docs) != 3 || string(bulk.Docs[1].Body) != want || string(bulk.Docs[2].Body) != `{"z":2}` {
			t.Errorf("%.80s in bulk: %v", in, err)
		}
		bulk, err = ReadBulk(strings.NewReader(`{"docs":[{"z":1},`+in+`]}`), BulkLimits{Document: 1 << 20, Space: func(int) error { return nil }})
		if err != nil || len(bulk.Docs) != 2 || string(bulk.Docs[1].Body) != want {
			t.Errorf("%.80s in a stream: %v", in, err)
		}
	}
}

// What CouchDB 3.5 makes of them: the last one, for members with a meaning too.
func TestLastSpecialMembers(t *testing.T) {
	t.Parallel()
	const rev = "1-0123456789abcdef0123456789abcdef"
	e, err := ParseEnvelope([]byte(`{"_rev":5,"_id":7,"_foo":1,"_id":"x","_rev":"` + rev + `","_foo":1}`))
	if err == nil {
		t.Errorf("a member that does not exist: %+v", e)
	}
	e, err = ParseEnvelope([]byte(`{"_rev":5,"_id":7,"_deleted":1,"_id":"x","_rev":"` + rev + `","_deleted":true,"_attachments":{"a":{"data":"!"},"a":{"stub":true,"stub":true}}}`))
	if err != nil || e.ID != "x" || e.Rev.String() != rev || !e.Deleted || len(e.Atts) != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	for body, want := range map[string]string{
		`{"a":1,"b":0,"a":2}`: "1-e2a311897277d0d6e2e6f2d26407372d", // seen on CouchDB 3.5
		`{"a":1,"a":2,"b":3}`: "1-d76c74eb7f5aa9bbe9f01ebde895887c",
	} {
		e, err := ParseEnvelope([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := (Rev{Pos: 1, ID: NewRevID(false, Rev{}, e.Body, nil)}).String(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// A text without duplicates is as it was; one with duplicates has what a map would have.
func TestLastMembersOfAny(t *testing.T) {
	t.Parallel()
	name := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "", "temperature_sensor_1_max_value", "temperature_sensor_2_max_value", "é"}), rapid.StringN(0, 20, -1))
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			if depth == 0 || rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				return rapid.SampledFrom([]string{"1", "null", `"x"`, "[]", "{}"}).Draw(t, "scalar")
			}
			var parts []string
			if rapid.Bool().Draw(t, "array") {
				parts = rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "elements")
				return "[" + strings.Join(parts, ",") + "]"
			}
			for range rapid.IntRange(0, 8).Draw(t, "members") {
				parts = append(parts, string(AppendString(nil, name.Draw(t, "name")))+":"+value(depth-1).Draw(t, "value"))
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(value(4).Draw(t, "value"))
		got, err := Canonical(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		if want := slowLast(t, text); !bytes.Equal(got, want) {
			t.Fatalf("%s: %s, want %s", text, got, want)
		}
	})
}

// slowLast is the text with the last members only, found one object after the other.
func slowLast(t *rapid.T, text []byte) []byte {
	switch {
	case IsArray(text):
		var parts [][]byte
		if err := EachElement(text, func(v []byte) error { parts = append(parts, slowLast(t, v)); return nil }); err != nil {
			t.Fatal(err)
		}
		return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
	case !IsObject(text):
		return text
	}
	var names []string
	var values [][]byte
	if err := EachMember(text, func(n string, v []byte) error { names, values = append(names, n), append(values, v); return nil }); err != nil {
		t.Fatal(err)
	}
	out := []byte("{")
	for i, n := range names {
		last := true
		for _, later := range names[i+1:] {
			last = last && later != n
		}
		if !last {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(AppendString(out, n), ':'), slowLast(t, values[i])...)
	}
	return append(out, '}')
}
