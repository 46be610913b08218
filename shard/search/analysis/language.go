package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/char/asciifolding"
	"github.com/blevesearch/bleve/v2/analysis/lang/ar"
	"github.com/blevesearch/bleve/v2/analysis/lang/bg"
	"github.com/blevesearch/bleve/v2/analysis/lang/ca"
	"github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	"github.com/blevesearch/bleve/v2/analysis/lang/cs"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/el"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/eu"
	"github.com/blevesearch/bleve/v2/analysis/lang/fa"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/ga"
	"github.com/blevesearch/bleve/v2/analysis/lang/gl"
	"github.com/blevesearch/bleve/v2/analysis/lang/hi"
	"github.com/blevesearch/bleve/v2/analysis/lang/hu"
	"github.com/blevesearch/bleve/v2/analysis/lang/hy"
	"github.com/blevesearch/bleve/v2/analysis/lang/id"
	"github.com/blevesearch/bleve/v2/analysis/lang/in"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pl"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ro"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/analysis/lang/tr"
	"github.com/blevesearch/bleve/v2/analysis/token/apostrophe"
	"github.com/blevesearch/bleve/v2/analysis/token/elision"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/irish"

	"divan/shard/search/syntax"
)

// language makes of the standard analyzer that of a language; nil: there is none of
// that name.
func language(a *Analyzer, name string, d syntax.Dialect) *Analyzer {
	switch name {
	case "brazilian", "greek":
		if d == syntax.Nouveau {
			return nil
		}
	case "portugese": //nolint:misspell // _nouveau spells it so
		name = "portuguese"
	}
	for _, set := range []func(*Analyzer, string) bool{romance, germanic, european, eastern, asian} {
		if set(a, name) {
			return a
		}
	}
	return nil
}

// stopList adds one of bleve's lists of stop words.
func (a *Analyzer) stopList(list []byte) {
	a.setStop(listed(list))
}

// listed returns the words of one of bleve's lists.
func listed(list []byte) []string {
	words := analysis.NewTokenMap()
	if err := words.LoadBytes(list); err != nil {
		return nil // never, of bytes in memory
	}
	out := make([]string, 0, len(words))
	for w := range words {
		out = append(out, w)
	}
	return out
}

// through passes terms through a filter of bleve; what is no UTF-8 passes by.
func through(f analysis.TokenFilter) filter {
	return func(term []byte) []byte {
		if len(term) == 0 || !utf8.Valid(term) {
			return term
		}
		t := analysis.Token{Term: term}
		f.Filter(analysis.TokenStream{&t})
		return t.Term
	}
}

// snowball makes a filter of a stemmer that bleve has no filter for.
func snowball(stem func(*snowballstem.Env) bool) filter {
	return func(term []byte) []byte {
		if !utf8.Valid(term) {
			return term
		}
		env := snowballstem.NewEnv(string(term))
		stem(env)
		return append(term[:0], env.Current()...)
	}
}

// elided removes articles with an apostrophe from the beginning of a term.
func elided(articles []byte) filter {
	words := analysis.NewTokenMap()
	for _, w := range listed(articles) {
		words.AddToken(w)
	}
	return through(elision.NewElisionFilter(words))
}

func romance(a *Analyzer, name string) bool {
	switch name {
	case "catalan":
		a.before = []filter{elided(ca.CatalanArticles)}
		a.stopList(ca.CatalanStopWords)
	case "french":
		a.before = []filter{elided(fr.FrenchArticles)}
		a.stopList(fr.FrenchStopWords)
		a.after = []filter{through(fr.NewFrenchLightStemmerFilter())}
	case "galician":
		a.stopList(gl.GalicianStopWords)
	case "italian":
		a.before = []filter{elided(it.ItalianArticles)}
		a.stopList(it.ItalianStopWords)
		a.after = []filter{through(it.NewItalianLightStemmerFilterFilter())}
	case "brazilian", "portuguese":
		a.stopList(pt.PortugueseStopWords)
		a.after = []filter{through(pt.NewPortugueseLightStemmerFilter())}
	case "romanian":
		a.stopList(ro.RomanianStopWords)
		a.after = []filter{through(ro.NewRomanianStemmerFilter())}
	case "spanish":
		a.stopList(es.SpanishStopWords)
		a.after = []filter{through(es.NewSpanishLightStemmerFilter())}
	default:
		return false
	}
	return true
}

func germanic(a *Analyzer, name string) bool {
	switch name {
	case "danish":
		a.stopList(da.DanishStopWords)
		a.after = []filter{through(da.NewDanishStemmerFilter())}
	case "dutch":
		a.stopList(nl.DutchStopWords)
		a.after = []filter{dutch(through(nl.NewDutchStemmerFilter()))}
	case "english":
		a.before = []filter{through(en.NewPossessiveFilter())}
		a.setStop(strings.Fields(englishStopWords))
		a.after = []filter{through(porter.NewPorterStemmer())}
	case "german":
		a.stopList(de.GermanStopWords)
		a.after = []filter{through(de.NewGermanNormalizeFilter()), through(de.NewGermanLightStemmerFilter())}
	case "norwegian":
		a.stopList(no.NorwegianStopWords)
		a.after = []filter{through(no.NewNorwegianStemmerFilter())}
	case "swedish":
		a.stopList(sv.SwedishStopWords)
		a.after = []filter{through(sv.NewSwedishStemmerFilter())}
	default:
		return false
	}
	return true
}

// dutch spares the stemmer some words that it would get wrong.
func dutch(stem filter) filter {
	return func(term []byte) []byte {
		switch string(term) {
		case "fiets", "bromfiets":
			return term
		case "ei":
			return []byte("eier")
		case "kind":
			return []byte("kinder")
		}
		return stem(term)
	}
}

func european(a *Analyzer, name string) bool {
	switch name {
	case "armenian":
		a.stopList(hy.ArmenianStopWords)
	case "basque":
		a.stopList(eu.BasqueStopWords)
	case "finnish":
		a.stopList(fi.FinnishStopWords)
		a.after = []filter{through(fi.NewFinnishStemmerFilter())}
	case "greek":
		a.before = []filter{greek}
		a.stopList(el.GreekStopWords)
	case "hungarian":
		a.stopList(hu.HungarianStopWords)
		a.after = []filter{through(hu.NewHungarianStemmerFilter())}
	case "irish":
		a.before = []filter{elided(ga.IrishArticles)}
		a.stopList(ga.IrishStopWords)
		a.after = []filter{snowball(irish.Stem)}
	case "turkish":
		// Case is folded by the language's rules, so not by the tokenizer.
		a.keepsCase = true
		a.before = []filter{through(apostrophe.NewApostropheFilter()), turkishLower}
		a.stopList(tr.TurkishStopWords)
		a.after = []filter{through(tr.NewTurkishStemmerFilter())}
	default:
		return false
	}
	return true
}

func turkishLower(term []byte) []byte {
	return []byte(strings.ToLowerSpecial(unicode.TurkishCase, string(term)))
}

func eastern(a *Analyzer, name string) bool {
	switch name {
	case "bulgarian":
		a.stopList(bg.BulgarianStopWords)
		a.after = []filter{inRunes(bulgarian)}
	case "czech":
		a.stopList(cs.CzechStopWords)
		a.after = []filter{inRunes(czech)}
	case "latvian":
	case "polish":
		a.stopList(pl.PolishStopWords)
		if stem, err := pl.NewPolishStemmerFilter(); err == nil { // its table is part of the program
			a.after = []filter{through(stem)}
		}
	case "russian":
		a.stopList(ru.RussianStopWords)
		a.after = []filter{through(ru.NewRussianStemmerFilter())}
	default:
		return false
	}
	return true
}

func asian(a *Analyzer, name string) bool {
	switch name {
	case "arabic":
		a.stopList(ar.ArabicStopWords)
		a.after = []filter{through(ar.NewArabicNormalizeFilter()), through(ar.NewArabicStemmerFilter())}
	case "chinese":
		a.pairs = true
		a.before = []filter{width}
		a.after = []filter{ascii(through(porter.NewPorterStemmer()))}
	case "hindi":
		a.before = []filter{through(in.NewIndicNormalizeFilter()), through(hi.NewHindiNormalizeFilter())}
		a.stopList(hi.HindiStopWords)
		a.after = []filter{through(hi.NewHindiStemmerFilter())}
	case "indonesian":
		a.stopList(id.IndonesianStopWords)
	case "japanese", "thai":
		a.pairs = true
		a.before = []filter{width}
	case "persian":
		a.before = []filter{through(ar.NewArabicNormalizeFilter()), through(fa.NewPersianNormalizeFilter())}
		a.stopList(fa.PersianStopWords)
	default:
		return false
	}
	return true
}

// fold replaces letters by what is nearest to them in ASCII.
func fold(term []byte) []byte {
	if isASCII(term) {
		return term
	}
	return asciifolding.New().Filter(term)
}

// width makes characters of full and half width common ones.
func width(term []byte) []byte {
	if isASCII(term) {
		return term
	}
	return through(cjk.NewCJKWidthFilter())(term)
}

func isASCII(term []byte) bool {
	for _, c := range term {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// ascii applies a filter to terms of ASCII only.
func ascii(f filter) filter {
	return func(term []byte) []byte {
		if !isASCII(term) {
			return term
		}
		return f(term)
	}
}
