package analysis

import (
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"divan/shard/search/syntax"
)

func TestStandard(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, e := range []struct{ text, search, nouveau string }{
		{"_a_ __ a__b _1", "_a_|a__b|_1", "_a_|a__b|_1"},
		{"a:b a::b a.b. .a 1:2 1.2, 1,2.3 1.a a.1 x,y", "a:b|b|a.b|1|2|1.2|1,2.3|1|1|x|y", "a:b|a|b|a.b|a|1|2|1.2|1,2.3|1|a|a|1|x|y"},
		{"it's 'tis O'Neil’s", "it's|tis|o'neil’s", "it's|tis|o'neil’s"},
		{"soft\u00adhyphen e\u0301\u0301 \u0301x", "soft\u00adhyphen|e\u0301\u0301|x", "soft\u00adhyphen|e\u0301\u0301|x"},
		{"カタカナ ひらがな漢字abcカタ", "カタカナ|ひ|ら|が|な|漢|字|abc|カタ", "カタカナ|ひ|ら|が|な|漢|字|abc|カタ"},
		{"カ_a", "カ_a", "カ_a"},
		{"สวัสดี ๑๒", "สวัสดี|๑๒", "สวัสดี|๑๒"},
		{"צה״ל צה\"ל ר'", "צה״ל|צה\"ל|ר'", "צה״ל|צה\"ל|ר'"},
		{"👍🏽 🇩🇪🇫🇷 👩‍👩‍👧 © ©\ufe0f 1️⃣", "1️⃣", "👍🏽|🇩🇪|🇫🇷|👩‍👩‍👧|©\ufe0f|1️⃣"},
		{"İÀß ΣΑΣ", "iàß|σασ", "iàß|σασ"},
		{"a " + long + " b", "b", "a|" + long[:255] + "|" + long[:45] + "|b"},
		{"\xff\xfea\xff", "", "a"},
		{"𠀀𠀁 𝒳y", "𠀀|𠀁|𝒳y", "𠀀|𠀁|𝒳y"},
	} {
		for d, want := range []string{e.search, e.nouveau} {
			if got := terms(t, syntax.Dialect(d), "standard", e.text); got != want {
				t.Errorf("%d %q: %q, want %q", d, e.text, got, want)
			}
		}
	}
}

func TestPositions(t *testing.T) {
	text := "The Quick (brown) fox's é and " + strings.Repeat("é", 256) + " z"
	a, err := Named("standard", syntax.Search)
	if err != nil {
		t.Fatal(err)
	}
	var s Stream
	s.Reset(a, text)
	type place struct{ position, start, end int }
	var got []place
	for token, ok := s.Next(); ok; token, ok = s.Next() {
		got = append(got, place{token.Position, token.Start, token.End})
	}
	end := len(text)
	if want := []place{{1, 4, 9}, {2, 11, 16}, {3, 18, 23}, {4, 24, 26}, {7, end - 1, end}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s.Reset(a, "again")
	if token, ok := s.Next(); !ok || string(token.Term) != "again" || token.Position != 0 {
		t.Errorf("%v", token)
	}
}

// slowWords are the words of UAX #29 as another implementation finds them, of which only
// those count that have a character of words in them.
func slowWords(s *Stream, text string) []string {
	var out []string
	state := -1
	for text != "" {
		var word string
		word, text, state = uniseg.FirstWordInString(text, state)
		s.text = word
		for i := 0; i < len(word); {
			c, n := s.classAt(i)
			if c >= letter && c <= katakana || c == han || c == hiragana {
				out = append(out, word)
				break
			}
			i += n
		}
	}
	return out
}

func TestWordsOfUnicode(t *testing.T) {
	a := &Analyzer{cut: standard, keepsCase: true, unlimited: true}
	pieces := []string{
		"a", "b", "Z", "é", "e\u0301", "ß", "я", "ա", "ש", "ע", "1", "2", "٣", "_", "‿", ".", ",", ":", ";", "'", "’", "\"", "·", "״", "-", " ", "\n",
		"\u00ad", "\u200d", "\u0301", "カ", "ー", "ひ", "漢", "한", "ㅎ", "\u066c", "\u066b", "\u2060", "(", "\u202f", "ª", "Ⅷ", "ʼ",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "text"), "")
		var s Stream
		s.Reset(a, text)
		want := slowWords(&s, text)
		if got := termsOf(a, text); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// TestClassesOfUnicode compares the table with the other implementation: whether the
// character goes on with a word, alone and between letters.
func TestClassesOfUnicode(t *testing.T) {
	a := &Analyzer{cut: standard, keepsCase: true, unlimited: true}
	wrong := 0
	var s Stream
	s.Reset(a, "")
	for r := rune(0x80); r < tabled; r++ {
		if c := s.classes[r]; c == southEast || c == emoji || c == textEmoji || c == regional || 0xd800 <= r && r < 0xe000 {
			continue
		}
		if 0x1f170 <= r && r <= 0x1f189 {
			continue // letters in squares, which the other one's table does not have
		}
		for _, text := range []string{"a" + string(r) + "b", "1" + string(r) + "2", "カ" + string(r)} {
			want := slowWords(&s, text)
			if got := termsOf(a, text); !slices.Equal(got, want) {
				if wrong++; wrong < 40 {
					t.Errorf("%U %q: %q, want %q", r, text, got, want)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d differ", wrong)
	}
}
