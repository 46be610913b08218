package analysis

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// misspelt is how _nouveau spells portuguese.
const misspelt = "portugese" //nolint:misspell // see above

// names returns those of _search and, of them, those that _nouveau does not have.
func names() (search, notNouveau []string) {
	return strings.Fields(`standard classic email keyword simple simple_asciifolding whitespace english cjk armenian basque catalan danish
		dutch finnish hungarian irish norwegian romanian russian swedish turkish french german italian portuguese spanish arabic bulgarian
		brazilian czech galician greek hindi indonesian latvian persian polish thai chinese japanese ` + misspelt), []string{"brazilian", "greek"}
}

func TestNames(t *testing.T) {
	search, notNouveau := names()
	for _, name := range append(search, "nosuch", "Standard", "", "perfield") {
		_, err := Named(name, syntax.Search)
		if is := strings.Contains(name, "nosuch") || name == "Standard" || name == "" || name == "perfield"; is != (err != nil) {
			t.Errorf("_search %s: %v", name, err)
		}
	}
	for _, name := range notNouveau {
		_, err := Named(name, syntax.Nouveau)
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != fault.BadRequest || refusal.Reason != name+" is not a valid analyzer name" {
			t.Errorf("_nouveau %s: %v", name, err)
		}
	}
}

// TestLanguages shows that each language has its stop words and its stemmer.
func TestLanguages(t *testing.T) {
	for analyzer, c := range map[string]struct{ text, want string }{
		"arabic":     {"من الكتاب", "كتاب"},
		"armenian":   {"և գիրք", "գիրք"},
		"basque":     {"eta liburu", "liburu"},
		"brazilian":  {"os livros", "livr"},
		"bulgarian":  {"и градове градът", "град|град"},
		"catalan":    {"de l'home", "home"},
		"chinese":    {"天气 running", "天气|run"},
		"cjk":        {"an s www 日本語abcカﾞ 한국어 字", "an|日本|本語|abc|ガ|한국|국어|字"},
		"czech":      {"pro ženami Karlův matce", "žn|karl|matk"},
		"danish":     {"og husene", "hus"},
		"dutch":      {"het ei kind fiets", "eier|kinder|fiets"},
		"english":    {"The CAT's laziness", "cat|lazi"},
		"finnish":    {"ja taloissa", "talo"},
		"french":     {"l'école d'Été les chevaux", "ecol|cheval"},
		"galician":   {"o libro", "libro"},
		"german":     {"und Straßen", "strass"},
		"greek":      {"και ΓΛΏΣΣΑΣ", "γλωσσασ"},
		"hindi":      {"और किताबें", "किताब"},
		"hungarian":  {"és házak", "ház"},
		"indonesian": {"dan buku", "buku"},
		"irish":      {"agus leabhair", "leabhair"},
		"italian":    {"l'uomo gli uomini", "uomo|uomin"},
		"japanese":   {"天気", "天気"},
		"latvian":    {"Grāmata", "grāmata"},
		"norwegian":  {"og husene", "hus"},
		"persian":    {"و کتاب", "كتاب"},
		"polish":     {"i książki", "książek"},
		misspelt:     {"os livros", "livr"},
		"romanian":   {"de cărțile", "cărț"},
		"russian":    {"и собаками", "собак"},
		"simple":     {"Été 42", "été"},
		"spanish":    {"de los libros", "libr"},
		"swedish":    {"och husen", "hus"},
		"thai":       {"ไทย", "ไท|ทย"},
		"turkish":    {"ve ISPARTA'nın İzmirler", "ıspar|izmir"},
	} {
		if got := terms(t, syntax.Search, analyzer, c.text); got != c.want {
			t.Errorf("%s %q: %s, want %s", analyzer, c.text, got, c.want)
		}
	}
}

func TestClassic(t *testing.T) {
	for text, want := range map[string]string{
		"U.S.A. U.S. u.s a.b. U.":            "usa|us|u.s|ab|u",
		"O'Reilly's rock'n'roll x'1 'y":      "o'reilly|rock'n'roll|x|1|y",
		"AT&T R&D2 x@y a@b.c a_b@c-d.e":      "at&t|r|d2|x@y|a@b.c|a_b@c-d.e",
		"www.example.com. 192.168.0.1":       "www.example.com|192.168.0.1",
		"wi-fi wi-fi6 2020-01-02 XL-5000/b7": "wi|fi|wi-fi6|2020-01-02|xl-5000/b7",
		"a-b-c 1,a a,1 a_b":                  "b|c|1,a|a,1|b",
		"日本go 한국":                            "日|本|go|한국",
		"x.y@":                               "x.y",
	} {
		if got := terms(t, syntax.Search, "classic", text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := terms(t, syntax.Nouveau, "classic", "a "+strings.Repeat("x", 300)+" b"); got != "b" {
		t.Errorf("too long: %s", got)
	}
}

func TestEmail(t *testing.T) {
	for text, want := range map[string]string{
		"x@y, +a.b@c.d. <q@r-s.t>":                               "x@y|+a.b@c.d|q@r-s.t",
		"..@a a..b@c a.@b @c":                                    "b@c|b|c",
		"see HTTP://Example.com:80/a?b#c. ftp://h example.org/a": "see|http://example.com:80/a?b#c|ftp://h|example.org/a",
		"http:// x.nosuch/y example.com:x":                       "http|x.nosuch|y|example.com:x",
		"a/b c.d 3.14/2":                                         "b|c.d|3.14|2",
	} {
		if got := terms(t, syntax.Search, "email", text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestSimple(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, e := range []example{
		{0, "keyword", "", ""},
		{0, "keyword", " " + long, " " + long},
		{0, "simple", "", ""},
		{0, "simple", "aB1éÉ-ⓐ日本", "ab|éé|日本"},
		{0, "simple", long, long[:255] + "|" + long[:45]},
		{0, "whitespace", "a\u00a0B\u2003c\u001cd\ne", "a\u00a0B|c|d|e"},
		{0, "whitespace", long, long[:255] + "|" + long[:45]},
		{0, "simple_asciifolding", "Œuvre Æ", "oeuvre|ae"},
	} {
		if got := terms(t, e.dialect, e.analyzer, e.text); got != e.want {
			t.Errorf("%s %q: %q, want %q", e.analyzer, e.text, got, e.want)
		}
	}
	a, _ := Named("keyword", syntax.Search)
	if got := termsOf(a, ""); len(got) != 1 || got[0] != "" {
		t.Errorf("the empty keyword: %q", got)
	}
}

func TestNormalize(t *testing.T) {
	for analyzer, want := range map[string][2]string{
		"standard": {"été*", "été*"}, "keyword": {"Été*", "Été*"}, "whitespace": {"été*", "Été*"}, "simple_asciifolding": {"été*", "ete*"}, "german": {"été*", "été*"},
	} {
		for d, want := range want {
			a, err := Named(analyzer, syntax.Dialect(d))
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Normalize("Été*"); got != want {
				t.Errorf("%d %s: %s, want %s", d, analyzer, got, want)
			}
		}
	}
}

func TestSearchFields(t *testing.T) {
	text := "The Running Dogs"
	const standard, english, whole = "running|dogs", "run|dog", "The Running Dogs"
	for definition, want := range map[string]struct{ v, w string }{
		``:                   {standard, standard},
		`"standard"`:         {standard, standard},
		`"english"`:          {english, english},
		`{"name":"english"}`: {english, english},
		`{"name":"standard","stopwords":["dogs"]}`:                                                                 {"the|running", "the|running"},
		`{"name":"standard","stopwords":[]}`:                                                                       {"the|running|dogs", "the|running|dogs"},
		`{"name":"english","stopwords":["dogs"]}`:                                                                  {"the|run", "the|run"},
		`{"name":"keyword","stopwords":["dogs"]}`:                                                                  {whole, whole},
		`{"name":"simple","stopwords":["dogs"]}`:                                                                   {"the|running|dogs", "the|running|dogs"},
		`{"name":"perfield","default":"standard","fields":{"v":"english","w":"keyword"}}`:                          {english, whole},
		`{"name":"perfield","default":"keyword","fields":{"v":{"name":"standard","stopwords":["running"]}}}`:       {"the|dogs", whole},
		`{"name":"perfield","default":{"name":"standard","stopwords":["the","dogs"]},"fields":{"v":"whitespace"}}`: {"The|Running|Dogs", "running"},
		`{"name":"perfield","fields":{"v":"english"}}`:                                                             {english, standard},
		`{"name":"perfield","default":"nosuch","fields":{"v":"nosuch"}}`:                                           {standard, standard},
		`{"name":"perfield"}`: {standard, standard},
		`{"name":"perfield","default":"keyword","fields":{"_id":"standard"}}`: {whole, whole},
	} {
		f, err := SearchFields([]byte(definition))
		if err != nil {
			t.Errorf("%s: %v", definition, err)
			continue
		}
		for field, want := range map[string]string{"v": want.v, "w": want.w, "_id": whole, "_partition": whole} {
			if got := strings.Join(termsOf(f.Of(field), text), "|"); got != want {
				t.Errorf("%s %s: %s, want %s", definition, field, got, want)
			}
		}
	}
	for _, definition := range []string{`"nosuch"`, `null`, `3`, `[]`, `{}`, `{"name":3}`, `{"name":"nosuch"}`, `{`} {
		_, err := SearchFields([]byte(definition))
		var refusal *fault.Error
		if !errors.As(err, &refusal) || refusal.Kind != fault.BadRequest || refusal.Code != "unknown_error" || refusal.Reason != "no_such_analyzer" {
			t.Errorf("%s: %v", definition, err)
		}
	}
}

func TestNouveauFields(t *testing.T) {
	f, err := NouveauFields("", map[string]string{"v": "english"})
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"v": "run|dog", "w": "the|running|dogs", "_id": "The Running Dogs"} {
		if got := strings.Join(termsOf(f.Of(field), "The Running Dogs"), "|"); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	for _, c := range []struct {
		fallback string
		named    map[string]string
	}{{"nosuch", nil}, {"standard", map[string]string{"v": "nosuch"}}} {
		if _, err := NouveauFields(c.fallback, c.named); err == nil || !strings.Contains(err.Error(), "nosuch is not a valid analyzer name") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// checkTokens analyses a text and checks what holds of all tokens.
func checkTokens(t rapid.TB, a *Analyzer, name, text string) {
	t.Helper()
	var s Stream
	s.Reset(a, text)
	position, start, end := -1, -1, 0
	for token, ok := s.Next(); ok; token, ok = s.Next() {
		if token.Position <= position || token.Start <= start || token.End < end || token.End > len(text) || token.End < token.Start {
			t.Fatalf("%s %q: %d [%d, %d) after %d [%d, %d)", name, text, token.Position, token.Start, token.End, position, start, end)
		}
		if len(token.Term) == 0 && name != "keyword" || utf8.ValidString(text) && !utf8.Valid(token.Term) {
			t.Fatalf("%s %q: %q", name, text, token.Term)
		}
		position, start, end = token.Position, token.Start, token.End
	}
}

// analyzers returns all of both dialects; the names of those of Nouveau begin with "n ".
func analyzers() map[string]*Analyzer {
	search, _ := names()
	all := map[string]*Analyzer{}
	for _, name := range search {
		for d, prefix := range []string{"", "n "} {
			if a, err := Named(name, syntax.Dialect(d)); err == nil {
				all[prefix+name] = a
			}
		}
	}
	return all
}

// TestAnyWord passes words that no language has through all stemmers: none may fail on
// what it does not expect.
func TestAnyWord(t *testing.T) {
	all := analyzers()
	alphabets := []string{
		"aeioulnstrmdåäöüß'’x", "çéèàœêíóúñãõ", "ąčęěřšůžýłœő", "абвгеийонтыьъяю", "אהוילמ", "ابتنويةكهىآ", "कखिीोंाय़्", "αςσέήϊωοι",
		"ışğiİIl'", "ガﾊﾟ한漢ก็า", "ӣա-և\u200c\u0301", "１Ａａ",
	}
	rapid.Check(t, func(t *rapid.T) {
		letters := []rune(rapid.SampledFrom(alphabets).Draw(t, "alphabet"))
		text := rapid.StringOfN(rapid.SampledFrom(letters), 1, 14, -1).Draw(t, "word")
		for name, a := range all {
			checkTokens(t, a, strings.TrimPrefix(name, "n "), text)
		}
	})
}

func FuzzAnalyze(f *testing.F) {
	for _, e := range transcripts() {
		f.Add(e.text)
	}
	f.Add("ﾊﾟ́x l'homme ISPARTA'nın \u200d👩‍👩‍👧 a.b.c. a@b-c.d 1-a_2 \xff\xe3")
	all := analyzers()
	f.Fuzz(func(t *testing.T, text string) {
		for name, a := range all {
			checkTokens(t, a, strings.TrimPrefix(name, "n "), text)
			_ = a.Normalize(text)
		}
	})
}
