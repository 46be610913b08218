package analysis

import (
	"strings"
	"testing"

	"divan/shard/search/syntax"
)

type example struct {
	dialect  syntax.Dialect
	analyzer string
	text     string
	want     string // terms with | between
}

// transcripts holds what CouchDB answered to every text that it analyzed.
func transcripts() []example {
	return []example{
		{syntax.Search, "standard", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|foxes|e|mail|a.b|example.com|it's|3.14|42|xy|z`},
		{syntax.Search, "classic", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|foxes|e|mail|a.b@example.com|3.14|42|xy&z`},
		{syntax.Search, "email", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|foxes|e|mail|a.b@example.com|it's|3.14|42|xy|z`},
		{syntax.Search, "keyword", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`},
		{syntax.Search, "simple", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `the|quick|brown|foxes|e|mail|a|b|example|com|it|s|or|xy|z`},
		{syntax.Search, "whitespace", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `The|Quick-Brown|foxes'|e-mail:|a.b@example.com,|it's|3.14|or|42!|XY&Z`},
		{syntax.Search, "simple_asciifolding", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `the|quick|brown|foxes|e|mail|a|b|example|com|it|s|or|xy|z`},
		{syntax.Search, "english", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|fox|e|mail|a.b|example.com|3.14|42|xy|z`},
		{syntax.Search, "standard", `café naïve Ünïcode`, `café|naïve|ünïcode`},
		{syntax.Search, "simple_asciifolding", `café naïve Ünïcode Straße`, `cafe|naive|unicode|strasse`},
		{syntax.Search, "keyword", `One Two  Three`, `One Two  Three`},
		{syntax.Search, "whitespace", "One  two\tThree\nfour", `One|two|Three|four`},
		{syntax.Search, "simple", `it's 3 Words42x`, `it|s|words|x`},
		{syntax.Search, "email", `mail to a.b+c@example.co.uk or see https://example.com/x?y=1`, `mail|a.b+c@example.co.uk|see|https://example.com/x?y=1`},
		{syntax.Search, "classic", `AT&T Corp. I.B.M. o'neill's`, `at&t|corp|ibm|o'neill`},
		{syntax.Search, "standard", `日本語 한국어`, `日|本|語|한국어`},
		{syntax.Search, "cjk", `日本語`, `日本|本語`},
		{syntax.Search, "english", `running runs ran easily the dogs`, `run|run|ran|easili|dog`},
		{syntax.Search, "german", `Häuser und Hunde`, `haus|hund`},
		{syntax.Search, "french", `les chevaux`, `cheval`},
		{syntax.Search, "spanish", `los gatos`, `gat`},
		{syntax.Search, "italian", `gli uomini belli`, `uomin|belli`},
		{syntax.Search, "portuguese", `os livros antigos`, `livr|antig`},
		{syntax.Search, "dutch", `de honden lopen`, `hond|lop`},
		{syntax.Search, "swedish", `hundarna och katterna`, `hund|katt`},
		{syntax.Search, "russian", `собаки бегут`, `собак|бегут`},
		{syntax.Search, "standard", `a_b c.d 1,000 x-y`, `a_b|c.d|1,000|x|y`},
		{syntax.Search, "standard", `an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with x`, `x`},
		{syntax.Search, "standard", `!!! ...`, ""},
		{syntax.Search, "standard", "", ""},
		{syntax.Nouveau, "standard", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `the|quick|brown|foxes|e|mail|a.b|example.com|it's|3.14|or|42|xy|z`},
		{syntax.Nouveau, "classic", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|foxes|e|mail|a.b@example.com|3.14|42|xy&z`},
		{syntax.Nouveau, "email", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|foxes|e|mail|a.b@example.com|it's|3.14|42|xy|z`},
		{syntax.Nouveau, "keyword", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`},
		{syntax.Nouveau, "simple", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `the|quick|brown|foxes|e|mail|a|b|example|com|it|s|or|xy|z`},
		{syntax.Nouveau, "whitespace", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `The|Quick-Brown|foxes'|e-mail:|a.b@example.com,|it's|3.14|or|42!|XY&Z`},
		{syntax.Nouveau, "simple_asciifolding", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `the|quick|brown|foxes|e|mail|a|b|example|com|it|s|or|xy|z`},
		{syntax.Nouveau, "english", `The Quick-Brown foxes' e-mail: a.b@example.com, it's 3.14 or 42! XY&Z`, `quick|brown|fox|e|mail|a.b|example.com|3.14|42|xy|z`},
		{syntax.Nouveau, "standard", `café naïve Ünïcode`, `café|naïve|ünïcode`},
		{syntax.Nouveau, "simple_asciifolding", `café naïve Ünïcode Straße`, `cafe|naive|unicode|strasse`},
		{syntax.Nouveau, "keyword", `One Two  Three`, `One Two  Three`},
		{syntax.Nouveau, "whitespace", "One  two\tThree\nfour", `One|two|Three|four`},
		{syntax.Nouveau, "simple", `it's 3 Words42x`, `it|s|words|x`},
		{syntax.Nouveau, "email", `mail to a.b+c@example.co.uk or see https://example.com/x?y=1`, `mail|a.b+c@example.co.uk|see|https://example.com/x?y=1`},
		{syntax.Nouveau, "classic", `AT&T Corp. I.B.M. o'neill's`, `at&t|corp|ibm|o'neill`},
		{syntax.Nouveau, "standard", `日本語 한국어`, `日|本|語|한국어`},
		{syntax.Nouveau, "cjk", `日本語`, `日本|本語`},
		{syntax.Nouveau, "english", `running runs ran easily the dogs`, `run|run|ran|easili|dog`},
		{syntax.Nouveau, "german", `Häuser und Hunde`, `haus|hund`},
		{syntax.Nouveau, "french", `les chevaux`, `cheval`},
		{syntax.Nouveau, "spanish", `los gatos`, `gat`},
		{syntax.Nouveau, "standard", `a_b c.d 1,000 x-y`, `a_b|c.d|1,000|x|y`},
		{syntax.Nouveau, "standard", `👍 smile`, `👍|smile`},
		{syntax.Nouveau, "standard", `!!! ...`, ""},
	}
}

func TestTranscripts(t *testing.T) {
	for _, e := range transcripts() {
		if got := terms(t, e.dialect, e.analyzer, e.text); got != e.want {
			t.Errorf("%d %s %q: %s, want %s", e.dialect, e.analyzer, e.text, got, e.want)
		}
	}
}

func terms(t *testing.T, d syntax.Dialect, analyzer, text string) string {
	t.Helper()
	a, err := Named(analyzer, d)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(termsOf(a, text), "|")
}

func termsOf(a *Analyzer, text string) []string {
	var s Stream
	var out []string
	s.Reset(a, text)
	for token, ok := s.Next(); ok; token, ok = s.Next() {
		out = append(out, string(token.Term))
	}
	return out
}
