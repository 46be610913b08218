package analysis

import (
	"slices"
	"strings"

	"divan/shard/search/syntax"
	"divan/storage/fault"
)

// Analyzer says how text becomes tokens. It is immutable: many Streams may use it at once.
type Analyzer struct {
	cut            cutter
	before         []filter // what is done with a term before stop words are looked for
	stop           map[string]struct{}
	stopShapes     [32]uint32 // by length, the last one for longer ones: a bit for each first byte
	after          []filter
	patterns       func(string) string // what is done with patterns and bounds
	keepsCase      bool                // terms are not put into lower case
	pairs          bool                // characters of Chinese, Japanese and Korean are paired
	pictures       bool                // emoji are tokens
	splits         bool                // what is too long is cut, not dropped
	unlimited      bool                // nothing is too long or empty
	takesStopWords bool
}

// cutter finds the borders of the next token of a text, without any limit of its length.
type cutter func(s *Stream) (start, end int, ok bool)

// filter changes a term, which it may do in place; an empty one is no token.
type filter func(term []byte) []byte

// Named returns the analyzer of that name as the dialect has it. An error is a
// *fault.Error: there is none.
func Named(name string, d syntax.Dialect) (*Analyzer, error) {
	if a := named(name, d); a != nil {
		return a, nil
	}
	if d == syntax.Nouveau {
		return nil, fault.New(fault.BadRequest, name+" is not a valid analyzer name")
	}
	return nil, &fault.Error{Kind: fault.BadRequest, Code: "unknown_error", Reason: "no_such_analyzer"}
}

// Normalize returns a pattern (of a prefix, a wildcard, a regular expression), a fuzzy
// word or a bound of a range in the form that it is looked for: not analyzed, but put
// into lower case where terms are. In the dialect Search only terms that are whole
// values keep their case.
func (a *Analyzer) Normalize(text string) string { return a.patterns(text) }

// stops reports whether a term is a stop word. Length and first byte rule out most.
func (a *Analyzer) stops(term []byte) bool {
	if len(term) == 0 || a.stopShapes[min(len(term), len(a.stopShapes)-1)]&(1<<(term[0]%32)) == 0 {
		return false
	}
	_, is := a.stop[string(term)]
	return is
}

func (a *Analyzer) setStop(words []string) {
	a.stop, a.stopShapes = make(map[string]struct{}, len(words)), [32]uint32{}
	for _, w := range words {
		if w != "" {
			a.stop[w] = struct{}{}
			a.stopShapes[min(len(w), len(a.stopShapes)-1)] |= 1 << (w[0] % 32)
		}
	}
}

// withStopWords returns the analyzer with other stop words instead of its own, if it
// has any.
func (a *Analyzer) withStopWords(words []string) *Analyzer {
	if !a.takesStopWords {
		return a
	}
	out := *a
	out.setStop(words)
	return &out
}

// englishStopWords are those of Lucene's general analyzers.
const englishStopWords = "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with"

// named returns nil for a name that the dialect does not have.
func named(name string, d syntax.Dialect) *Analyzer {
	a := &Analyzer{cut: standard, patterns: strings.ToLower, splits: d == syntax.Nouveau, pictures: d == syntax.Nouveau, takesStopWords: true}
	switch name {
	case "standard":
		if d == syntax.Search {
			a.setStop(strings.Fields(englishStopWords))
		}
	case "classic":
		a.cut, a.splits = classic, false
		a.before = []filter{undotted}
		a.setStop(strings.Fields(englishStopWords))
	case "email":
		a.cut = emails
		a.setStop(strings.Fields(englishStopWords))
	case "keyword":
		a.cut, a.unlimited, a.keepsCase, a.takesStopWords = keyword, true, true, false
		a.patterns = strings.Clone
	case "whitespace":
		a.cut, a.splits, a.keepsCase, a.takesStopWords = words, true, true, false
		if d == syntax.Nouveau {
			a.patterns = strings.Clone
		}
	case "simple":
		a.cut, a.splits, a.takesStopWords = letters, true, false
	case "simple_asciifolding":
		a.cut, a.splits, a.takesStopWords = letters, true, false
		a.before = []filter{fold}
		if d == syntax.Nouveau {
			a.patterns = func(s string) string { return string(fold([]byte(strings.ToLower(s)))) }
		}
	case "cjk":
		a.pairs = true
		a.before = []filter{width()}
		stop := slices.DeleteFunc(strings.Fields(englishStopWords), func(w string) bool { return w == "an" })
		a.setStop(append(stop, "s", "t", "www"))
	default:
		return language(a, name, d)
	}
	return a
}
