package syntax

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

const f = DefaultField

func word(text string) Clause { return Clause{Query: Term{f, text}} }

func TestTrees(t *testing.T) {
	open := Bound{Open: true}
	for _, c := range []struct {
		query           string
		search, nouveau Query
	}{
		{"a", Term{f, "a"}, Term{f, "a"}},
		{"(((a)))", Term{f, "a"}, Term{f, "a"}},
		{"-a", &Boolean{Clauses: []Clause{{false, Negated, Term{f, "a"}}}}, &Boolean{Clauses: []Clause{{false, Negated, Term{f, "a"}}}}},
		{"- a", &Boolean{Clauses: []Clause{word("-"), word("a")}}, &Boolean{Clauses: []Clause{{false, Negated, Term{f, "a"}}}}},
		{"a + ! b", &Boolean{Clauses: []Clause{word("a"), word("+"), word("!"), word("b")}}, nil},
		{"42", Number{f, 42}, Term{f, "42"}},
		{"x:\\-1.5e1D", Number{"x", -15}, Term{"x", "-1.5e1D"}},
		{"x:Infinity", Number{"x", math.Inf(1)}, Term{"x", "Infinity"}},
		{"x:0x1p4", Number{"x", 16}, Term{"x", "0x1p4"}},
		{"x:1e999", Number{"x", math.Inf(1)}, Term{"x", "1e999"}},
		{"x:1_0", Term{"x", "1_0"}, Term{"x", "1_0"}},
		{"10:x", Term{"10", "x"}, nil},
		{`a\ b:\u0041\uD83D\uDC4D\uD83D`, Term{"a b", "A👍\ufffd"}, Term{"a b", "A👍\ufffd"}},
		{`a\AND OR\b`, &Boolean{Clauses: []Clause{word("aAND"), word("ORb")}}, &Boolean{Clauses: []Clause{word("aAND"), word("ORb")}}},
		{`\AND TO`, &Boolean{Clauses: []Clause{word("AND"), word("TO")}}, &Boolean{Clauses: []Clause{word("AND"), word("TO")}}},
		{"a\u3000b\tc\r\nd", &Boolean{Clauses: []Clause{word("a"), word("b"), word("c"), word("d")}}, &Boolean{Clauses: []Clause{word("a"), word("b"), word("c"), word("d")}}},
		{`"a \"b\" \\ * ?"`, Phrase{f, `a "b" \ * ?`, 0}, Phrase{f, `a "b" \ * ?`, 0}},
		{`"*:*"`, Phrase{f, "*:*", 0}, Phrase{f, "*:*", 0}},
		{`"a"~2.9^3`, Boosted{Phrase{f, "a", 2}, 3}, Boosted{Phrase{f, "a", 2}, 3}},
		{`"a"~`, Phrase{f, "a", 0}, Phrase{f, "a", 0}},
		{`"a"~99999999999999999999`, Phrase{f, "a", math.MaxInt32}, Phrase{f, "a", math.MaxInt32}},
		{`a\*b*`, Prefix{f, "a*b"}, Prefix{f, "a*b"}},
		{`\**`, nil, Prefix{f, "*"}},
		{`\*?\\\u002a`, Wildcard{f, `\*?\\\*`}, Wildcard{f, `\*?\\\*`}},
		{"a**", Wildcard{f, "a**"}, Wildcard{f, "a**"}},
		{"a?~1", Wildcard{f, "a?"}, Wildcard{f, "a?"}},
		{"42~", Fuzzy{f, "42", 2}, Fuzzy{f, "42", 2}},
		{"abcde~0.8", Fuzzy{f, "abcde", 0}, Fuzzy{f, "abcde", 0}}, // 0.8 is more than 0.8 in single precision
		{"ééé~0.5", Fuzzy{f, "ééé", 1}, Fuzzy{f, "ééé", 1}},
		{"abcdefghij~0.1", Fuzzy{f, "abcdefghij", 2}, Fuzzy{f, "abcdefghij", 2}},
		{"a^2~1", Boosted{Fuzzy{f, "a", 1}, 2}, nil},
		{"a ~ 1 ^ 2", nil, Boosted{Fuzzy{f, "a", 1}, 2}},
		{"a^0", Boosted{Term{f, "a"}, 0}, Boosted{Term{f, "a"}, 0}},
		{"(a^3)^2", Boosted{Term{f, "a"}, 2}, Boosted{Term{f, "a"}, 6}},
		{"(a b)^2", Boosted{&Boolean{Clauses: []Clause{word("a"), word("b")}}, 2}, Boosted{&Boolean{Clauses: []Clause{word("a"), word("b")}}, 2}},
		{`/a\/b\\/`, Regexp{f, `a\/b\\`}, Regexp{f, `a\/b\\`}},
		{"/a/~2", Regexp{f, "a"}, nil},
		{"//", Regexp{f, ""}, Regexp{f, ""}},
		{`x:[a TO "b c"}`, Range{"x", Bound{"a", false, true}, Bound{"b c", false, false}}, Range{"x", Bound{"a", false, true}, Bound{"b c", false, false}}},
		{`x:{"1" TO 2]^2`, Boosted{NumberRange{"x", 1, 2, false, true}, 2}, Boosted{Range{"x", Bound{"1", false, false}, Bound{"2", false, true}}, 2}},
		{`x:{* TO *}`, NumberRange{"x", math.Inf(-1), math.Inf(1), true, true}, Range{"x", open, open}},
		{`x:[a TO *]`, Range{"x", Bound{"a", false, true}, open}, Range{"x", Bound{"a", false, true}, open}},
		{`x:["*" TO b]`, Range{"x", Bound{"*", false, true}, Bound{"b", false, true}}, Range{"x", open, Bound{"b", false, true}}},
		{`x:["" TO \*]`, Range{"x", Bound{"", false, true}, Bound{"*", false, true}}, Range{"x", Bound{"", false, true}, Bound{"*", false, true}}},
		{`x:["a"b TO c"d"]`, Range{"x", Bound{`"a"b`, false, true}, Bound{`c"d"`, false, true}}, Range{"x", Bound{`"a"b`, false, true}, Bound{`c"d"`, false, true}}},
		{"x:[TO TO TO]", nil, Range{"x", Bound{"TO", false, true}, Bound{"TO", false, true}}},
		{"x:[a\tTO\tb]", Range{"x", Bound{"a", false, true}, Bound{"b", false, true}}, Range{"x", Bound{"a", false, true}, Bound{"b", false, true}}},
		{"x<5 y>=\"a b\"", &Boolean{Clauses: []Clause{word("x<5"), word("y>="), {Query: Phrase{f, "a b", 0}}}}, &Boolean{Clauses: []Clause{{Query: Range{"x", open, Bound{"5", false, false}}}, {Query: Range{"y", Bound{"a b", false, true}, open}}}}},
		{"x=(a b)", &Boolean{Clauses: []Clause{word("x="), {Query: &Boolean{Clauses: []Clause{word("a"), word("b")}}}}}, &Boolean{Clauses: []Clause{{Query: Term{"x", "a"}}, {Query: Term{"x", "b"}}}}},
		{"(a b)@2", &Boolean{Clauses: []Clause{{Query: &Boolean{Clauses: []Clause{word("a"), word("b")}}}, word("@2")}}, &Boolean{Clauses: []Clause{word("a"), word("b")}, Minimum: 2}},
		{"((a b)^2@1)^3@1", &Boolean{Clauses: []Clause{
			{Query: Boosted{&Boolean{Clauses: []Clause{{Query: Boosted{&Boolean{Clauses: []Clause{word("a"), word("b")}}, 2}}, word("@1")}}, 3}}, word("@1"),
		}}, Boosted{&Boolean{Clauses: []Clause{{Query: Boosted{&Boolean{Clauses: []Clause{word("a"), word("b")}, Minimum: 1}, 2}}}, Minimum: 1}, 3}},
		{"(a)@1", &Boolean{Clauses: []Clause{word("a"), word("@1")}}, &Boolean{Clauses: []Clause{word("a")}, Minimum: 1}},
		{"*:*", All{}, All{}},
		{"*:(*)^2", Boosted{All{}, 2}, Boosted{All{}, 2}},
		{`*:\*`, Term{"*", "*"}, Term{"*", "*"}},
		{"x:(a y:(b) c)", &Boolean{Clauses: []Clause{{Query: Term{"x", "a"}}, {Query: Term{"y", "b"}}, {Query: Term{"x", "c"}}}}, &Boolean{Clauses: []Clause{{Query: Term{"x", "a"}}, {Query: Term{"y", "b"}}, {Query: Term{"x", "c"}}}}},
		{"fn:a", Term{"fn", "a"}, nil},
		{"fn", Term{f, "fn"}, Term{f, "fn"}},
	} {
		for d, want := range []Query{c.search, c.nouveau} {
			q, err := Parse(c.query, Dialect(d))
			switch {
			case want == nil && err == nil:
				t.Errorf("%d %s: %#v", d, c.query, q)
			case want != nil && !reflect.DeepEqual(q, want):
				t.Errorf("%d %s: %#v, %v, want %#v", d, c.query, q, err, want)
			}
		}
	}
}

// occurs shows the clauses as a query in which all are written with + or -.
func occurs(b *Boolean, d Dialect, gone func(int) bool) string {
	var out []string
	for i, o := range b.Occurs(d, gone) {
		if gone != nil && gone(i) {
			continue
		}
		text := b.Clauses[i].Query.String()
		text = text[strings.IndexByte(text, ':')+1:]
		out = append(out, map[Occur]string{Should: "", Must: "+", MustNot: "-"}[o]+text)
	}
	return strings.Join(out, " ")
}

func TestOccurs(t *testing.T) {
	for query, want := range map[string]string{
		"a AND b OR c":                "+a +b c",
		"a OR b AND c":                "a +b +c",
		"a b c":                       "a b c",
		"NOT a AND b":                 "-a +b",
		"a AND NOT b":                 "+a -b",
		"a OR NOT b":                  "a -b",
		"+a -b c":                     "+a -b c",
		"a AND +b":                    "+a +b",
		"a AND b AND c OR d AND e":    "+a +b +c +d +e",
		"the AND quick":               "+quick",
		"a the AND c":                 "+a +c | a +c",
		"a AND the AND c":             "+a +c",
		"-a the AND c":                "-a +c",
		"a -the AND c":                "+a +c | a +c",
		"a b AND the":                 "a +b",
		"a AND the the AND the AND b": "+a +b",
	} {
		first, second, differs := strings.Cut(want, " | ")
		if !differs {
			second = first
		}
		for d, want := range []string{first, second} {
			q, err := Parse(query, Dialect(d))
			b, ok := q.(*Boolean)
			if !ok {
				t.Fatal(query, err)
			}
			got := occurs(b, Dialect(d), func(i int) bool { return b.Clauses[i].Query == Term{f, "the"} })
			if got != want {
				t.Errorf("%d %s: %s, want %s", d, query, got, want)
			}
		}
	}
	b := &Boolean{Clauses: []Clause{word("a"), {And: true, Query: Term{f, "b"}}}}
	if got := occurs(b, Search, nil); got != "+a +b" {
		t.Errorf("none gone: %s", got)
	}
}

func TestRefused(t *testing.T) {
	for _, e := range []example{
		{Search, `a\`, `Cannot parse 'a\': Lexical error at line 1, column 3.  Encountered: <EOF> after : "\\"`},
		{Search, `[a\ TO b]`, `Cannot parse '[a\ TO b]': Term can not end with escape character.`},
		{Search, `a\u00`, `Cannot parse 'a\u00': Truncated unicode escape sequence.`},
		{Search, `a\u00é0:b`, `Cannot parse 'a\u00é0:b': Non-hex character in Unicode escape sequence: é`},
		{Search, `a\uzzzz*`, `Cannot parse 'a\uzzzz*': Non-hex character in Unicode escape sequence: z`},
		{Search, `a\u1?`, `Cannot parse 'a\u1?': Non-hex character in Unicode escape sequence: ?`},
		{Search, `"\u12"`, `Cannot parse '"\u12"': Truncated unicode escape sequence.`},
		{Search, "a~1.5", "Cannot parse 'a~1.5': Fractional edit distances are not allowed!"},
		{Nouveau, "a~1.5", "Fractional edit distances are not allowed."},
		{Search, `\**`, `Cannot parse '\**': '*' not allowed as first character in PrefixQuery`},
		{Search, "n:-5", `Cannot parse 'n:-5': Encountered " "-" "- "" at line 1, column 2.`},
		{Search, "👍 é)", `Cannot parse '👍 é)': Encountered " ")" ") "" at line 1, column 4.`},
		{Search, "a^x", `Cannot parse 'a^x': Lexical error at line 1, column 3.  Encountered: "x" (120), after : ""`},
		{Search, "a]", `Cannot parse 'a]': Lexical error at line 1, column 2.  Encountered: "]" (93), after : ""`},
		{Search, "(a))", `Cannot parse '(a))': Encountered " ")" ") "" at line 1, column 3.`},
		{Search, "[a TO]", `Cannot parse '[a TO]': Encountered " "]" "] "" at line 1, column 5.`},
		{Search, "[a TO b c]", `Cannot parse '[a TO b c]': Encountered " <RANGE_GOOP> "c "" at line 1, column 8.`},
		{Nouveau, "fn:maxwidth(2 a)", "Syntax Error, cannot parse fn:maxwidth(2 a): interval functions are not supported at line 1, column 0."},
		{Nouveau, "a<(b)", `Syntax Error, cannot parse a<(b): Encountered " "(" "( "" at line 1, column 2.`},
		{Nouveau, "(a)@b", `Syntax Error, cannot parse (a)@b: Encountered " <TERM> "b "" at line 1, column 4.`},
		{Nouveau, `a\u*`, `Syntax Error, cannot parse a\u*: Truncated unicode escape sequence.`},
	} {
		checkRefused(t, e)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, within, beyond string
	}{
		{"clauses", strings.Repeat("a ", maxClauses), strings.Repeat("a ", maxClauses+1)},
		{"clauses of all levels", strings.Repeat("(a b c) ", maxAll/4), strings.Repeat("(a b c) ", maxAll/4-1) + "(a b c d) a"},
		{"depth", strings.Repeat("(", maxDepth) + "a" + strings.Repeat(")", maxDepth), strings.Repeat("(", maxDepth+1) + "a" + strings.Repeat(")", maxDepth+1)},
		{"bytes", strings.Repeat("a", maxBytes), strings.Repeat("a", maxBytes+1)},
		{"open groups", "a", strings.Repeat("(", maxBytes)},
		{"open groups of fields", "a", strings.Repeat("+x:(", maxBytes/4)},
		{"open ranges", "a", strings.Repeat(`["`, maxBytes/2)},
	} {
		for _, d := range []Dialect{Search, Nouveau} {
			if _, err := Parse(c.within, d); err != nil {
				t.Errorf("%d %s: %.200v", d, c.name, err)
			}
			if _, err := Parse(c.beyond, d); err == nil {
				t.Errorf("%d %s: no error", d, c.name)
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	query := `title:(lazy AND dog) OR "quick brown"~2^1.5 -tag:ani* +price:[10 TO 20] foxe~1 /qu[a-z]+/`
	b.SetBytes(int64(len(query)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(query, Search); err != nil {
			b.Fatal(err)
		}
	}
}
