package syntax

import (
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// genText draws words that mean something when they are not escaped.
func genText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "AND", "OR", "NOT", "&&", "||", "TO", "fn", "*", "?", "a*b", "x y", `\`, `"`, "/", "+", "-1", "x-y", "!", "é", "日本", "\u3000", "u0041", "x@<>=", "9x", "\xff", "[", "}"}),
		rapid.StringN(1, 8, -1))
}

// genWord draws words that are no number.
func genWord() *rapid.Generator[string] {
	return genText().Filter(func(s string) bool { _, ok := number(s); return !ok })
}

func genBound(text *rapid.Generator[string]) *rapid.Generator[Bound] {
	return rapid.Custom(func(t *rapid.T) Bound {
		if rapid.Bool().Draw(t, "open") {
			return Bound{Open: true}
		}
		return Bound{Text: text.Draw(t, "bound"), Inclusive: rapid.Bool().Draw(t, "inclusive")}
	})
}

func genPattern(t *rapid.T) string {
	out, _ := pattern(escapedWord(genText().Draw(t, "first")))
	for range rapid.IntRange(1, 3).Draw(t, "wildcards") {
		more, _ := pattern(escapedWord(genText().Draw(t, "more")))
		out += rapid.SampledFrom([]string{"*", "?", "**"}).Draw(t, "wildcard") + more
	}
	return out
}

func escapedWord(text string) string {
	var p printer
	p.escape(text)
	return p.String()
}

func genLeaf(t *rapid.T, d Dialect) Query {
	field := genText().Draw(t, "field")
	switch rapid.IntRange(0, 9).Draw(t, "leaf") {
	case 0:
		return Phrase{field, rapid.String().Draw(t, "phrase"), rapid.IntRange(0, 3).Draw(t, "slop")}
	case 1:
		return Prefix{field, "p" + genText().Draw(t, "prefix")}
	case 2:
		return Wildcard{field, genPattern(t)}
	case 3:
		return Fuzzy{field, genText().Draw(t, "fuzzy"), rapid.IntRange(0, 2).Draw(t, "edits")}
	case 4:
		return Regexp{field, rapid.StringMatching(`([^/\\]|\\.){0,8}`).Draw(t, "regexp")}
	case 5:
		q := Range{field, genBound(genText()).Draw(t, "lower"), genBound(genText()).Draw(t, "upper")}
		if _, ok := numbers("", q.Lower, q.Upper); ok && d == Search {
			return All{}
		}
		return q
	case 6:
		if d == Search {
			return Number{field, rapid.Float64().Draw(t, "number")}
		}
	case 7:
		if d == Search {
			return NumberRange{field, math.Inf(-1), rapid.Float64().Draw(t, "upper"), rapid.Bool().Draw(t, "from"), rapid.Bool().Draw(t, "to")}
		}
	case 8:
		return All{}
	}
	if d == Nouveau {
		return Term{field, genText().Draw(t, "word")}
	}
	return Term{field, genWord().Draw(t, "word")}
}

func genTree(t *rapid.T, d Dialect, depth int) Query {
	var q Query
	if depth == 0 || rapid.Bool().Draw(t, "is a leaf") {
		q = genLeaf(t, d)
	} else {
		q = genBoolean(t, d, depth)
	}
	if rapid.IntRange(0, 3).Draw(t, "boosted") == 0 {
		q = Boosted{q, rapid.Float32Range(0, 1000).Draw(t, "boost")}
	}
	return q
}

func genBoolean(t *rapid.T, d Dialect, depth int) Query {
	b := &Boolean{}
	for i := range rapid.IntRange(1, 4).Draw(t, "clauses") {
		b.Clauses = append(b.Clauses, Clause{
			And:      i > 0 && rapid.Bool().Draw(t, "and"),
			Modifier: rapid.SampledFrom([]Modifier{Plain, Plus, Negated}).Draw(t, "modifier"),
			Query:    genTree(t, d, depth-1),
		})
	}
	if d == Nouveau {
		b.Minimum = rapid.IntRange(0, 2).Draw(t, "minimum")
	}
	if len(b.Clauses) == 1 && b.Clauses[0].Modifier == Plain {
		b.Clauses[0].Modifier = Plus
	}
	return b
}

func TestPrintedParses(t *testing.T) {
	for _, d := range []Dialect{Search, Nouveau} {
		rapid.Check(t, func(t *rapid.T) {
			want := genTree(t, d, 4)
			got, err := Parse(want.String(), d)
			if err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s:\n%#v, want\n%#v", want, got, want)
			}
		})
	}
}
