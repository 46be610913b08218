package query

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/doc"
)

// TestIntervalsHoldWhatMatches checks a selector's analysis against documents:
// what it matches has the fields that it requires, with values in the intervals.
func TestIntervalsHoldWhatMatches(t *testing.T) {
	narrowed, required := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		selectors, documents := genSelector(rapid.IntRange(1, 3).Draw(rt, "depth")), genObject(3)
		if rapid.IntRange(0, 3).Draw(rt, "wide") > 0 {
			selectors, documents = genNarrowSelector(), genNarrowDocument()
		}
		selector, err := doc.Canonical(nil, encode(nil, selectors.Draw(rt, "selector")))
		if err != nil || !doc.IsObject(selector) {
			rt.Skip()
		}
		s, err := Parse(selector)
		if err != nil {
			rt.Skip(err)
		}
		for range 8 {
			document, err := doc.Canonical(nil, encode(nil, documents.Draw(rt, "document")))
			if err != nil {
				rt.Fatal(err)
			}
			if !s.matches(document) || s.Nothing() { // a query by such a selector returns no document
				continue
			}
			for _, field := range []string{"a", "b", "a.b", "c", "_id"} {
				k, err := ParseKey([]byte(`{"fields":{"` + field + `":"asc"}}`))
				if err != nil {
					rt.Fatal(err)
				}
				key, there, _ := k.Append(NewWork(t.Context(), nil), nil, document)
				if s.Requires([]string{field}) {
					required++
					if !there {
						rt.Fatalf("%s matches %s, which lacks %s", selector, document, field)
					}
				}
				for _, alternatives := range []bool{false, true} {
					list := s.Intervals(field, alternatives)
					if !alternatives && len(list) > 1 {
						rt.Fatalf("%s: %d intervals", selector, len(list))
					}
					if !Full(list) {
						narrowed++
					}
					if there && !holds(rt, list, key[1:len(key)-1], field == "_id") {
						rt.Fatalf("%s matches %s, whose %s is not in %s", selector, document, field, show(list))
					}
				}
			}
		}
	})
	t.Logf("%d narrowed, %d required", narrowed, required)
	if narrowed == 0 || required == 0 {
		t.Error("the test sees nothing")
	}
}

// genNarrowSelector draws a selector of comparisons that a document of
// genNarrowDocument often matches.
func genNarrowSelector() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		comparisons := func(label string) object {
			o := object{}
			for range rapid.IntRange(1, 2).Draw(t, label) {
				name := rapid.SampledFrom([]string{"a", "b", "a.b", "_id"}).Draw(t, "field")
				operator := rapid.SampledFrom([]string{"$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$gte", "$exists", "$in"}).Draw(t, "operator")
				var arg any
				switch operator {
				case "$exists":
					arg = true
				case "$in":
					arg = []any{genNarrowValue().Draw(t, "one"), genNarrowValue().Draw(t, "other")}
				default:
					arg = genNarrowValue().Draw(t, "arg")
				}
				o = append(o, member{name, object{{operator, arg}}})
			}
			return o
		}
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			return object{{"$or", []any{comparisons("first"), comparisons("second")}}}
		case 1:
			return object{{"$not", comparisons("inner")}}
		}
		return comparisons("conditions")
	})
}

func genNarrowDocument() *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		o := object{{"_id", rapid.SampledFrom([]any{"a", "b"}).Draw(t, "id")}}
		for _, name := range []string{"a", "b"} {
			switch rapid.IntRange(0, 5).Draw(t, name) {
			case 0:
			case 1:
				o = append(o, member{name, object{{"b", genNarrowValue().Draw(t, "inner")}}})
			default:
				o = append(o, member{name, genNarrowValue().Draw(t, "value")})
			}
		}
		return o
	})
}

func genNarrowValue() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{json.Number("0"), json.Number("1"), json.Number("2"), "a", "b"})
}

func holds(t *rapid.T, list []Interval, value []byte, id bool) bool {
	at := newBound(value, id)
	for i, v := range list {
		if i > 0 && !before(list[i-1].Hi, v.Lo) {
			t.Fatalf("not in order: %s", show(list))
		}
	}
	return slices.ContainsFunc(list, func(v Interval) bool {
		return (v.Lo.Key == nil || bytes.Compare(v.Lo.Key, at.Key) <= 0) && (v.Hi.Key == nil || bytes.Compare(at.Key, v.Hi.Key) <= 0)
	})
}

func show(list []Interval) string {
	var out []string
	for _, v := range list {
		out = append(out, string(v.Lo.Text)+".."+string(v.Hi.Text))
	}
	return strings.Join(out, " ")
}

func TestIntervals(t *testing.T) {
	for _, tc := range []struct{ selector, field, one, several string }{
		{`{}`, "a", "..", ".."},
		{`{"a":1}`, "a", "1..1", "1..1"},
		{`{"a":1}`, "b", "..", ".."},
		{`{"a":{"$gt":1,"$lt":5}}`, "a", "1..5", "1..5"},
		{`{"a":{"$gt":5,"$lt":1}}`, "a", "", ""},
		{`{"a":{"$in":[3,1]}}`, "a", "..", "1..1 3..3 []..{}"},
		{`{"a":{"$in":[]}}`, "a", "..", ""},
		{`{"_id":{"$in":["b","B"]}}`, "_id", "..", `"B".."B" "b".."b"`},
		{`{"$or":[{"a":1},{"a":{"$gt":5}}]}`, "a", "..", "1..1 5.."},
		{`{"$or":[{"a":1},{"b":{"$gt":5}}]}`, "a", "..", ".."},
		{`{"$or":[{"a":{"$lt":3}},{"a":{"$gt":1}}]}`, "a", "..", ".."},
		{`{"$or":[]}`, "a", "..", ".."},
		{`{"a":{"$gte":2},"$or":[{"a":1},{"a":3},{"a":{"$gte":"x"}}]}`, "a", "2..", `3..3 "x"..`},
		{`{"a":{"$beginsWith":"ab"}}`, "a", "\"ab\"..\"ab\uffff\"", "\"ab\"..\"ab\uffff\""},
		{`{"a":{"$beginsWith":"zü"}}`, "a", "\"z\"..\"z\uffff\"", "\"z\"..\"z\uffff\""},
		{`{"$not":{"a":{"$gt":1}}}`, "a", "..1", "..1"},
		{`{"a":{"$exists":true}}`, "a", "..", ".."},
	} {
		s, err := Parse([]byte(tc.selector))
		if err != nil {
			t.Fatal(err)
		}
		if one, several := show(s.Intervals(tc.field, false)), show(s.Intervals(tc.field, true)); one != tc.one || several != tc.several {
			t.Errorf("%s: %s is %q and %q, want %q and %q", tc.selector, tc.field, one, several, tc.one, tc.several)
		}
	}
}

func TestRequiresAndIndexable(t *testing.T) {
	for _, tc := range []struct{ selector, required, indexable, fields string }{
		{`{}`, "", "", ""},
		{`{"b":1,"a":{"$gt":1}}`, "a b", "a b", "a b"},
		{`{"a":{"$ne":1},"b":{"$exists":true},"c":{"$exists":false}}`, "a b", "b c", "a b c"},
		{`{"$or":[{"a":1,"b":1},{"a":2}]}`, "a", "", "a b"},
		{`{"$or":[]}`, "a b c", "", ""}, // of no match
		{`{"$or":[],"a":1}`, "a", "a", "a"},
		{`{"$or":[],"a":{"$all":[]}}`, "a b c", "", "a"},
		{`{"$not":{"a":{"$in":[1]}}}`, "a", "", "a"},
		{`{"a":{"$elemMatch":{"b":1}}}`, "a", "", "a"},
		{`{"a":{"$beginsWith":"x"},"b":{"$regex":"x"}}`, "a b", "a", "a b"},
	} {
		s, err := Parse([]byte(tc.selector))
		if err != nil {
			t.Fatal(err)
		}
		var required []string
		for _, f := range []string{"a", "b", "c"} {
			if s.Requires([]string{f}) {
				required = append(required, f)
			}
		}
		got := []string{strings.Join(required, " "), strings.Join(s.Indexable(), " "), strings.Join(s.Fields(), " ")}
		if want := []string{tc.required, tc.indexable, tc.fields}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", tc.selector, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	const document = `{"_id":"x","a":{"b":[1,{"z":1,"z":2}],"c.d":3},"e":null,"a":{"b":[1,{"z":1,"z":2}]}}`
	for _, tc := range []struct{ definition, want string }{
		{`{"fields":{"a.b":"asc","_id":"asc"}}`, `[[1,{"z":2}],"x"]`},
		{`{"fields":{"e":"asc"}}`, `[null]`},
		{`{"fields":{}}`, `[]`},
		{`{"fields":{"a.b.0":"asc"}}`, `[1]`},
		{`{"fields":{"e":"asc","q":"asc"}}`, ``},
		{`{"fields":{"a.c\\.d":"asc"}}`, ``},
		{`{"fields":{"e":"asc"},"partial_filter_selector":{"e":1}}`, ``},
		{`{"fields":{"e":"asc"},"partial_filter_selector":{"_id":{"$gt":"a"}}}`, `[null]`},
	} {
		k, err := ParseKey([]byte(tc.definition))
		if err != nil {
			t.Fatal(err)
		}
		got, ok, err := k.Append(NewWork(t.Context(), nil), nil, []byte(document))
		if err != nil || ok != (tc.want != "") || ok && string(got) != tc.want {
			t.Errorf("%s: %s %v, want %s", tc.definition, got, ok, tc.want)
		}
	}
	for _, bad := range []string{`{}`, `{"fields":["a"]}`, `{"fields":{"a..b":"asc"}}`, `{"fields":{"a":"asc"},"partial_filter_selector":{"$x":1}}`} {
		if _, err := ParseKey([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
