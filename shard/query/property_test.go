package query

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"divan/storage/doc"
)

// genValue draws a JSON value out of few, so that equal ones are common.
func genValue(depth int) *rapid.Generator[any] {
	scalars := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.SampledFrom([]any{true, false}),
		rapid.Map(rapid.SampledFrom([]json.Number{
			"0", "1", "1.0", "2", "-3", "7", "2.5", "-0.5", "1.0e20", "12345678901234567890", "12345678901234567891", "9007199254740992", "9007199254740993", "9007199254740992.0",
		}), func(n json.Number) any { return n }),
		rapid.Map(genString(), func(s string) any { return s }),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	inner := genValue(depth - 1)
	return rapid.OneOf(append(scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), func(v []any) any { return append([]any{}, v...) }),
		rapid.Map(genObject(depth-1), func(o object) any { return o }))...)
}

func genString() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"", "a", "A", "b", "ab", "aB", "Ab", "é", "e", "ee", "a\u0001", "z\n", `q"`, "_", "-", "1", "10", "zz zz zz zz zz", "日本", "\x7f",
	})
}

func genName() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "a", "a", "b", "b", "b", "c", "0", "1", "a.b", "_id", `x"`, "é", ""})
}

func genObject(depth int) *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		o := object{}
		for range rapid.IntRange(0, 6).Draw(t, "members") {
			o = append(o, member{genName().Draw(t, "name"), genValue(depth).Draw(t, "value")})
		}
		return o
	})
}

// genSelector draws a selector; few of them are refused.
func genSelector(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if depth == 0 {
			return genValue(1).Draw(t, "bare")
		}
		o := object{}
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 1, 2, 3}).Draw(t, "conditions") {
			o = append(o, genCondition(t, depth))
		}
		return o
	})
}

func genCondition(t *rapid.T, depth int) member {
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0, 1, 2, 3:
		name := rapid.SampledFrom([]string{"a", "a", "b", "b", "c", "a.b", `a\.b`, "a.0", "0", "a.b.c", "_id", `x"`, "é", `\a`}).Draw(t, "field")
		return member{name, genSelector(depth-1).Draw(t, "of field")}
	case 4:
		name := rapid.SampledFrom([]string{"$and", "$or", "$nor"}).Draw(t, "list")
		kids := rapid.SliceOfN(genSelector(depth-1), 0, 3).Draw(t, "kids")
		return member{name, append([]any{}, kids...)}
	case 5:
		name := rapid.SampledFrom([]string{"$not", "$not", "$not", "$elemMatch", "$allMatch", "$keyMapMatch"}).Draw(t, "inner")
		kid, ok := genSelector(max(1, depth-1)).Draw(t, "kid").(object)
		if !ok {
			kid = object{}
		}
		return member{name, kid}
	}
	return genOperator(t)
}

func genOperator(t *rapid.T) member {
	name := rapid.SampledFrom([]string{
		"$eq", "$ne", "$lt", "$lte", "$gt", "$gte", "$in", "$nin", "$all", "$exists", "$type", "$size", "$mod", "$regex", "$beginsWith",
	}).Draw(t, "operator")
	var arg any
	switch name {
	case "$in", "$nin", "$all":
		arg = append([]any{}, rapid.SliceOfN(genValue(2), 0, 3).Draw(t, "args")...)
	case "$exists":
		arg = rapid.Bool().Draw(t, "exists")
	case "$type":
		arg = rapid.SampledFrom([]string{"null", "boolean", "number", "string", "array", "object", "other"}).Draw(t, "type")
	case "$size":
		arg = rapid.SampledFrom([]json.Number{"0", "1", "2"}).Draw(t, "size")
	case "$mod":
		arg = []any{
			rapid.SampledFrom([]json.Number{"1", "2", "-3", "5"}).Draw(t, "divisor"),
			rapid.SampledFrom([]json.Number{"0", "1", "-1"}).Draw(t, "remainder"),
		}
	case "$regex":
		arg = rapid.SampledFrom([]string{"", "a", "^a$", "z$", "[$]", "(?=a)a", `(.)\1`}).Draw(t, "regex")
	case "$beginsWith":
		arg = genString().Draw(t, "prefix")
	default:
		arg = genValue(2).Draw(t, "arg")
	}
	return member{name, arg}
}

// TestMatchesAsTold compares Match with the slow evaluator.
func TestMatchesAsTold(t *testing.T) {
	matched, unmatched := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var o object
		for len(o) == 0 {
			o, _ = genSelector(rapid.SampledFrom([]int{1, 2, 2, 2, 3, 4}).Draw(rt, "depth")).Draw(rt, "selector").(object)
		}
		selector, err := doc.Canonical(nil, encode(nil, o))
		if err != nil {
			rt.Fatal(err)
		}
		s, err := Parse(selector)
		if err != nil {
			rt.Skip(err)
		}
		for range 4 {
			document, err := doc.Canonical(nil, encode(nil, genObject(3).Draw(rt, "document")))
			if err != nil {
				rt.Fatal(err)
			}
			got, want := s.matches(document), matchSlowly(t, selector, document)
			if got != want {
				rt.Fatalf("selector %s (normal: %s)\ndocument %s: %v, want %v", selector, string(s.Append(nil)), document, got, want)
			}
			if got {
				matched++
			} else {
				unmatched++
			}
		}
	})
	t.Logf("%d matches, %d others", matched, unmatched)
	if matched+unmatched > 200 && (matched == 0 || unmatched == 0) {
		t.Errorf("%d matches, %d others: the test sees only one side", matched, unmatched)
	}
}
