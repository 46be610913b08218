package automaton

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"divan/storage/fault"
)

// TestMatch: the syntax, by terms that match and terms that do not.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ pattern, matching, others string }{
		{"qu[a-z]+", "quick quiz", "qu Quick quick1"},
		{"[ad].*", "animal dance a/b a", "season ''"},
		{"uic", "uic", "quick uick"},
		{"a|b|cd", "a b cd", "ab c d"},
		{"ab?c*", "a ab abcc acc", "abb b"},
		{"(ab){2,3}", "abab ababab", "ab abababab"},
		{"a{2}", "aa", "a aaa"},
		{"a{2,}b", "aab aaaab", "ab aa"},
		{"[^ab]c", "cc éc", "ac bc c"},
		{"[-a]b", "-b ab", "bb"},
		{`a\.b`, "a.b", "axb"},
		{`"a.b"*c`, "c a.bc a.ba.bc", "axbc"},
		{"~(.*ab.*)", "a b ba ''", "ab xaby"},
		{"~a", "b aa ''", "a"},
		{"a.*&.*b", "ab axb", "a b ba"},
		{"a@", "a abc", "b ba"},
		{"a#|b", "b", "a ab"},
		{"a()b", "ab", "a"},
		{"<5-25>", "5 9 10 19 25 025 0005", "4 26 '' 100 0"},
		{"<08-11>", "08 09 10 11", "8 12 008 9"},
		{"<0-9>", "0 5 9", "00 10"},
		{"<0-10>", "0 00 7 10 010", "11 a"},
		{"x<998-1002>y", "x998y x999y x1000y x1002y x01001y", "x1003y x997y"},
		{"ü.", "üb üü", "ü ub"},
		{"a{0}", "''", "a"},
	} {
		m, err := Compile(c.pattern, false)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for list, want := range map[string]bool{c.matching: true, c.others: false} {
			for _, term := range strings.Fields(list) {
				term = strings.ReplaceAll(term, "''", "")
				if got, err := m.Match([]byte(term)); got != want || err != nil {
					t.Errorf("%s and %q: %t, %v", c.pattern, term, got, err)
				}
				if want && !strings.HasPrefix(term, m.Prefix()) {
					t.Errorf("%s and %q: the prefix %q", c.pattern, term, m.Prefix())
				}
			}
		}
	}
}

// TestClasses: what a letter behind a backslash means in Lucene 9, and in Lucene 4.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		pattern, term string
		nine, four    bool
	}{
		{`\d+`, "123", true, false},
		{`\d+`, "ddd", false, true},
		{`[\dx]+`, "1x2", true, false},
		{`\D`, "1", false, false},
		{`\D`, "x", true, false},
		{`\w\W\s`, "_- ", true, false},
		{`\S`, " ", false, false},
		{`\.`, ".", true, true},
		{`[^\d]`, "5", false, true},
	} {
		for classes, want := range map[bool]bool{true: c.nine, false: c.four} {
			m, err := Compile(c.pattern, classes)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := m.Match([]byte(c.term)); got != want || err != nil {
				t.Errorf("%s and %q, classes %t: %t, %v", c.pattern, c.term, classes, got, err)
			}
		}
	}
}

// TestRefused: what is no pattern, or too much of one.
func TestRefused(t *testing.T) {
	for _, pattern := range []string{
		"a|", "(a", "a)", "[a", "a{", "a{2", "a{3,2}", "a{x}", "a{99999}", `"a`, "<1>", "<a-b>", "<1-2", "~", `\`, "[b-a]", "a&",
		strings.Repeat("a", maxPattern+1), strings.Repeat("(", maxDepth+1) + "a" + strings.Repeat(")", maxDepth+1),
	} {
		if _, err := Compile(pattern, true); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%.50s: %v", pattern, err)
		}
	}
}

// TestBounds: patterns whose automata are large take bounded memory, and are refused rather
// than matched wrongly.
func TestBounds(t *testing.T) {
	for _, pattern := range []string{
		"(a|b)*a(a|b){40}", "((a|b)*a(a|b){12}&(a|b)*b(a|b){17})c", "~((a|b)*a(a|b){30})", "((a{1,500}){1,500}){1,500}", "(a?){500}a{500}",
	} {
		m, err := Compile(pattern, true)
		if err != nil {
			t.Fatalf("%s: %v", pattern, err)
		}
		r, _ := parse(pattern, true)
		seed := uint32(1)
		for range 300 {
			term := make([]rune, 60)
			for i := range term {
				seed = seed*1664525 + 1013904223
				term[i] = 'a' + rune(seed>>31)
			}
			got, err := m.Match([]byte(string(term)))
			if err != nil && !fault.Is(err, fault.BadRequest) {
				t.Fatalf("%s: %v", pattern, err)
			}
			if len(m.nodes.list) > maxNodes || len(m.next) > maxTransitions+len(m.borders)+1 {
				t.Fatalf("%s: %d nodes, %d transitions", pattern, len(m.nodes.list), len(m.next))
			}
			if !strings.Contains(pattern, "500") && err == nil && got != slices.Contains(ends(r, term, 0), len(term)) {
				t.Fatalf("%s and %q: %t", pattern, string(term), got)
			}
		}
	}
}

// ends tries all ways to match a pattern at a place, and returns where they end, ascending.
func ends(s *syntax, term []rune, from int) (out []int) {
	switch s.kind {
	case nothing:
	case emptyString:
		out = []int{from}
	case characters:
		if from < len(term) && slices.ContainsFunc(s.spans, func(s span) bool { return s.from <= term[from] && term[from] <= s.to }) {
			out = []int{from + 1}
		}
	case concatenation:
		out = []int{from}
		for _, p := range s.parts {
			out = endsOf(p, term, out)
		}
	case union:
		for _, p := range s.parts {
			out = append(out, ends(p, term, from)...)
		}
	case intersection:
		out = ends(s.parts[0], term, from)
		for _, p := range s.parts[1:] {
			also := ends(p, term, from)
			out = slices.DeleteFunc(out, func(end int) bool { return !slices.Contains(also, end) })
		}
	case complement:
		not := ends(s.parts[0], term, from)
		for end := from; end <= len(term); end++ {
			if !slices.Contains(not, end) {
				out = append(out, end)
			}
		}
	case repetition:
		at := []int{from}
		for i := 0; len(at) > 0 && (s.max < 0 || i <= s.max) && i <= s.min+len(term)+1; i++ {
			if i >= s.min {
				out = append(out, at...)
			}
			at = endsOf(s.parts[0], term, at)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func endsOf(s *syntax, term []rune, from []int) (out []int) {
	for _, at := range from {
		out = append(out, ends(s, term, at)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// drawPattern makes a pattern of some depth.
func drawPattern(r *rapid.T, depth int) string {
	if depth == 0 {
		return rapid.SampledFrom([]string{"a", "b", "ü", ".", "[ab]", "[^a]", `"ab"`, "()", "#", "@", "<7-12>", "<07-12>", "1"}).Draw(r, "leaf")
	}
	x := drawPattern(r, depth-1)
	switch rapid.IntRange(0, 8).Draw(r, "kind") {
	case 0:
		return x + drawPattern(r, depth-1)
	case 1:
		return "(" + x + "|" + drawPattern(r, depth-1) + ")"
	case 2:
		return "(" + x + "&" + drawPattern(r, depth-1) + ")"
	case 3:
		return "~(" + x + ")"
	case 4:
		return "(" + x + ")" + rapid.SampledFrom([]string{"*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}"}).Draw(r, "times")
	case 5, 6:
		return x + drawPattern(r, depth-1)
	}
	return x
}

// TestPatterns: a pattern matches what a search of all ways does.
func TestPatterns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pattern := drawPattern(r, rapid.IntRange(0, 4).Draw(r, "depth"))
		m, err := Compile(pattern, true)
		if err != nil {
			r.Fatalf("%s: %v", pattern, err)
		}
		s, _ := parse(pattern, true)
		for range 20 {
			term := rapid.SliceOfN(rapid.SampledFrom([]rune("aabbü012")), 0, 6).Draw(r, "term")
			got, err := m.Match([]byte(string(term)))
			if want := slices.Contains(ends(s, term, 0), len(term)); got != want || err != nil {
				r.Fatalf("%s and %q: %t, %v", pattern, string(term), got, err)
			}
			if got && !strings.HasPrefix(string(term), m.Prefix()) {
				r.Fatalf("%s and %q: the prefix %q", pattern, string(term), m.Prefix())
			}
		}
	})
}

// FuzzCompile: any pattern is compiled or refused, and any term matches or does not; what
// matches begins with the prefix.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"a*", "~(a&b)", "<1-20>", `"x"|[^a-b]{1,2}`, "@#()", `\`, "[\xff-\U0010ffff]"} {
		f.Add(seed, "ab12")
	}
	f.Fuzz(func(t *testing.T, pattern, term string) {
		m, err := Compile(pattern, true)
		if err != nil {
			if !fault.Is(err, fault.BadRequest) {
				t.Error(err)
			}
			return
		}
		for _, b := range m.borders {
			if b < 0 || b > unicode.MaxRune+1 {
				t.Errorf("a border at %d", b)
			}
		}
		matches, err := m.Match([]byte(term))
		if err != nil && !fault.Is(err, fault.BadRequest) {
			t.Error(err)
		}
		if matches && !strings.HasPrefix(term, m.Prefix()) {
			t.Errorf("%q matches, but does not begin with %q", term, m.Prefix())
		}
	})
}
