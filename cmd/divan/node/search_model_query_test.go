package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"divan/shard/search/syntax"
)

// drawVocabulary makes words, the most frequent first: some that English has for stop
// words, and others of syllables, so that many are near to each other.
func drawVocabulary(rng *rand.Rand, n int) []string {
	words := []string{"the", "of", "and", "a", "is"}
	seen := map[string]bool{}
	syllables := []string{"ba", "co", "di", "fe", "lu", "mar", "nes", "pol", "ra", "sti", "tro", "ven", "zü", "xi", "wen", "ching", "jo", "ka", "per", "gla"}
	for len(words) < n {
		word := ""
		for range 2 + rng.IntN(3) {
			word += syllables[rng.IntN(len(syllables))]
		}
		switch rng.IntN(30) {
		case 0:
			word += "s"
		case 1:
			word += "ing"
		case 2:
			word = fmt.Sprint(rng.IntN(3000))
		}
		if !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	return words
}

// word draws a word as often as documents have it.
func (m *searchModel) word() string { return m.vocabulary[m.rank.Uint64()] }

// rareWord draws one that not every document has.
func (m *searchModel) rareWord() string {
	if m.rng.IntN(2) == 0 {
		return m.word()
	}
	return m.vocabulary[m.rng.IntN(len(m.vocabulary))]
}

func (m *searchModel) text(n int) string {
	words := make([]string, n)
	for i := range words {
		if words[i] = m.word(); m.rng.IntN(8) == 0 {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, []string{" ", ", ", " "}[m.rng.IntN(3)])
}

func (m *searchModel) tag() string { return m.vocabulary[5+m.rng.IntN(40)] }

func (m *searchModel) kind() string {
	return []string{"red", "Green", "blue", "two words", "a-b"}[m.rng.IntN(5)]
}

// draw makes a document.
func (m *searchModel) draw(id string) *searchDoc {
	d := &searchDoc{Text: m.text(1 + m.rng.IntN(40)), Title: m.text(1 + m.rng.IntN(5)), Kind: m.kind(), N: []int{}}
	for range m.rng.IntN(2) {
		d.N = append(d.N, m.rng.IntN(200)-20)
	}
	if m.rng.IntN(20) > 0 {
		d.Tags = []string{}
		for range m.rng.IntN(4) {
			d.Tags = append(d.Tags, m.tag())
		}
	}
	if _, err := fmt.Sscanf(id, "d%d", &d.Serial); err != nil {
		m.t.Fatal(err)
	}
	return d
}

// misspelt changes a letter or two of a word.
func (m *searchModel) misspelt(word string) string {
	letters := []rune(word)
	for range m.rng.IntN(3) {
		i := m.rng.IntN(len(letters))
		switch m.rng.IntN(4) {
		case 0:
			letters[i] = 'e'
		case 1:
			letters = slices.Insert(letters, i, 'r')
		case 2:
			if len(letters) > 2 {
				letters = slices.Delete(letters, i, i+1)
			}
		default:
			if i > 0 {
				letters[i-1], letters[i] = letters[i], letters[i-1]
			}
		}
	}
	return string(letters)
}

// wordOf draws a field, and a word that it has.
func (m *searchModel) wordOf() (field, word string) {
	switch m.rng.IntN(8) {
	case 0:
		return "tag", m.tag()
	case 1:
		return "title", m.word()
	case 2:
		return "_id", m.ids[m.rng.IntN(len(m.ids))]
	}
	return "default", m.rareWord()
}

// phraseOf draws words that stand near to each other in a document, or anywhere.
func (m *searchModel) phraseOf() string {
	words := strings.Fields(m.text(3))
	if d := m.docs[m.ids[m.rng.IntN(len(m.ids))]]; d != nil && m.rng.IntN(5) > 0 {
		words = strings.Fields(d.Text)
	}
	from := m.rng.IntN(len(words))
	words = slices.Clone(words[from:min(len(words), from+2+m.rng.IntN(4))])
	switch {
	case len(words) > 2 && m.rng.IntN(3) == 0:
		words = slices.Delete(words, 1, 2)
	case len(words) > 1 && m.rng.IntN(3) == 0:
		i := m.rng.IntN(len(words) - 1)
		words[i], words[i+1] = words[i+1], words[i]
	}
	return strings.Join(words[:min(len(words), 4)], " ")
}

// bounds draws those of a range.
func (m *searchModel) bounds(draw func() string) (lower, upper syntax.Bound) {
	bound := func() syntax.Bound {
		if m.rng.IntN(4) == 0 {
			return syntax.Bound{Open: true}
		}
		return syntax.Bound{Text: draw(), Inclusive: m.rng.IntN(2) == 0}
	}
	return bound(), bound()
}

// cut returns the beginning of a word, of a letter at least.
func (m *searchModel) cut(word string) string {
	letters := []rune(word)
	return string(letters[:1+m.rng.IntN(len(letters))])
}

// query draws one of some depth.
func (m *searchModel) query(dialect syntax.Dialect, depth int) syntax.Query {
	if kind := m.rng.IntN(14); depth > 0 && kind > 6 {
		b := &syntax.Boolean{}
		for i := range 1 + m.rng.IntN(4) {
			b.Clauses = append(b.Clauses, syntax.Clause{
				And: i > 0 && m.rng.IntN(4) == 0, Modifier: []syntax.Modifier{syntax.Plain, syntax.Plain, syntax.Plain, syntax.Plain, syntax.Plus, syntax.Negated}[m.rng.IntN(6)],
				Query: m.query(dialect, depth-1),
			})
		}
		if dialect == syntax.Nouveau && m.rng.IntN(6) == 0 {
			b.Minimum = 1 + m.rng.IntN(3)
		}
		return b
	}
	field, word := m.wordOf()
	switch m.rng.IntN(10) {
	case 0:
		return syntax.Term{Field: field, Text: word}
	case 1:
		return syntax.Phrase{Field: "default", Text: m.phraseOf(), Slop: m.rng.IntN(5)}
	case 2:
		return syntax.Phrase{Field: "kind", Text: m.kind()}
	case 3:
		return syntax.Prefix{Field: field, Text: m.cut(word)}
	case 4:
		return syntax.Wildcard{Field: field, Pattern: m.wildcard(word)}
	case 5:
		return syntax.Fuzzy{Field: field, Text: m.misspelt(word), Edits: m.rng.IntN(3)}
	case 6:
		return syntax.Regexp{Field: field, Pattern: m.regexp(word)}
	case 7:
		r := syntax.Range{Field: field}
		r.Lower, r.Upper = m.bounds(func() string { _, word := m.wordOf(); return word })
		return r
	}
	return m.numbers()
}

// numbers draws a query of a number, as text: the dialects differ in what it is.
func (m *searchModel) numbers() syntax.Query {
	field, draw := "n", func() string { return fmt.Sprint(m.rng.IntN(200)) }
	if m.rng.IntN(2) == 0 {
		field, draw = "serial", func() string { return fmt.Sprint(m.rng.IntN(m.serial + 1)) }
	}
	if m.rng.IntN(4) == 0 {
		return syntax.Term{Field: field, Text: draw()}
	}
	r := syntax.Range{Field: field}
	for r.Lower.Open == r.Upper.Open && (r.Lower.Open || r.Lower.Text == "") { // of Search that would be a range of words
		r.Lower, r.Upper = m.bounds(draw)
	}
	return r
}

func (m *searchModel) wildcard(word string) string {
	letters := []rune(word)
	i := 1 + m.rng.IntN(len(letters))
	switch rest := string(letters[min(len(letters), i+1):]); m.rng.IntN(3) {
	case 0:
		return string(letters[:i]) + "?" + rest
	case 1:
		return string(letters[:i]) + "*" + rest
	}
	return string(letters[:1]) + "*" + string(letters[len(letters)-1:]) + "*?"
}

// regexp draws one that means the same in Go.
func (m *searchModel) regexp(word string) string {
	first, n := utf8.DecodeRuneInString(word)
	switch m.rng.IntN(6) {
	case 0:
		return m.cut(word) + ".*"
	case 1:
		return fmt.Sprintf("[%ca-c].{%d}", first, utf8.RuneCountInString(word[n:]))
	case 2:
		return fmt.Sprintf("(%s|%s)(s|ing)?", word, m.word())
	case 3:
		return fmt.Sprintf("[^%c].{3,5}", first)
	case 4:
		return ".*" + m.cut(word) + "[a-m]+"
	}
	return "(ba|co|di)+[a-z]?" + m.cut(word) + "?.*"
}
