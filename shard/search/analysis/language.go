package analysis

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"

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

// snowball makes a filter of a stemmer of the Snowball project.
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

func romance(a *Analyzer, name string) bool {
	switch name {
	case "catalan":
		a.before = []filter{elided("d l m n s t")}
		a.stopList("catalan")
	case "french":
		a.before = []filter{elided("l m t qu n s j d c jusqu quoiqu lorsqu puisqu")}
		a.stopList("french")
		a.after = []filter{french()}
	case "galician":
		a.stopList("galician")
	case "italian":
		a.before = []filter{elided("c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d")}
		a.stopList("italian")
		a.after = []filter{italian()}
	case "brazilian", "portuguese":
		a.stopList("portuguese")
		a.after = []filter{portuguese()}
	case "romanian":
		a.stopList("romanian")
		a.after = []filter{snowball(romanian.Stem)}
	case "spanish":
		a.stopList("spanish")
		a.after = []filter{spanish()}
	default:
		return false
	}
	return true
}

func germanic(a *Analyzer, name string) bool {
	switch name {
	case "danish":
		a.stopList("danish")
		a.after = []filter{snowball(danish.Stem)}
	case "dutch":
		a.stopList("dutch")
		a.after = []filter{sparing(snowball(dutch.Stem))}
	case "english":
		a.before = []filter{possessive}
		a.setStop(strings.Fields(englishStopWords))
		a.after = []filter{porter()}
	case "german":
		a.stopList("german")
		a.after = []filter{german()}
	case "norwegian":
		a.stopList("norwegian")
		a.after = []filter{snowball(norwegian.Stem)}
	case "swedish":
		a.stopList("swedish")
		a.after = []filter{snowball(swedish.Stem)}
	default:
		return false
	}
	return true
}

// sparing spares the stemmer of Dutch some words that it would get wrong.
func sparing(stem filter) filter {
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
		a.stopList("armenian")
	case "basque":
		a.stopList("basque")
	case "finnish":
		a.stopList("finnish")
		a.after = []filter{snowball(finnish.Stem)}
	case "greek":
		a.before = []filter{greek}
		a.stopList("greek")
	case "hungarian":
		a.stopList("hungarian")
		a.after = []filter{snowball(hungarian.Stem)}
	case "irish":
		a.before = []filter{elided("d m b")}
		a.stopList("irish")
		a.after = []filter{snowball(irish.Stem)}
	case "turkish":
		// Case is folded by the language's rules, so not by the tokenizer.
		a.keepsCase = true
		a.before = []filter{beforeApostrophe, turkishLower}
		a.stopList("turkish")
		a.after = []filter{snowball(turkish.Stem)}
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
		a.stopList("bulgarian")
		a.after = []filter{bulgarian()}
	case "czech":
		a.stopList("czech")
		a.after = []filter{czech()}
	case "latvian":
	case "polish":
		a.stopList("polish")
		a.after = []filter{inRunes(polishTable().stem)}
	case "russian":
		a.stopList("russian")
		a.after = []filter{snowball(russian.Stem)}
	default:
		return false
	}
	return true
}

func asian(a *Analyzer, name string) bool {
	switch name {
	case "arabic":
		a.stopList("arabic")
		a.after = []filter{spelled(arabicLetters), arabic()}
	case "chinese":
		a.pairs = true
		a.before = []filter{width()}
		a.after = []filter{ascii(porter())}
	case "hindi":
		a.before = []filter{indic(), spelled(hindiLetters)}
		a.stopList("hindi")
		a.after = []filter{hindi()}
	case "indonesian":
		a.stopList("indonesian")
	case "japanese", "thai":
		a.pairs = true
		a.before = []filter{width()}
	case "persian":
		a.before = []filter{spelled(arabicLetters), spelled(persianLetters)}
		a.stopList("persian")
	default:
		return false
	}
	return true
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
