// Package searchtest is a second engine for full-text queries, for tests: it keeps
// documents as lists of terms at positions and looks at each of them anew for every query.
// It has the trees of package syntax and the tokens of package analysis in common with the
// first one, and nothing else.
package searchtest

import (
	"slices"
	"strings"

	"divan/shard/search/analysis"
	"divan/shard/search/syntax"
)

// Nearest is how many terms a fuzzy word stands for at most.
const Nearest = 50

// Value is the value of a field in a document: a text, or a number.
type Value struct {
	Field    string
	Text     string
	Number   float64
	IsNumber bool
	Exact    bool // the text is one term as it is, not analyzed
}

// Options say how an Index is searched.
type Options struct {
	Dialect   syntax.Dialect
	Analyzers *analysis.Fields
	Numeric   []string          // fields of numbers, of Nouveau
	Regexps   *strings.Replacer // makes regular expressions of Go of what differs; nil: nothing does
}

// Index is documents. It is not safe for use by several goroutines, but that many may Find.
type Index struct {
	o       Options
	docs    map[string]*document
	numbers map[string]int // of terms
	terms   []string       // by number; they stay
}

// document is the terms and the numbers of a document, by field.
type document struct {
	words  map[string][]word
	values map[string][]float64
}

// word is a term, and where it is.
type word struct {
	term     int
	position int
}

// New returns an index without documents.
func New(o Options) *Index {
	return &Index{o: o, docs: map[string]*document{}, numbers: map[string]int{}}
}

// Put replaces a document.
func (x *Index) Put(id string, values []Value) {
	d := &document{words: map[string][]word{}, values: map[string][]float64{}}
	next := map[string]int{} // position, by field
	add := func(field, term string, position int) {
		d.words[field] = append(d.words[field], word{x.number(term), position})
		next[field] = position + 1
	}
	add("_id", id, 0)
	for _, v := range values {
		base := next[v.Field]
		switch {
		case v.IsNumber:
			d.values[v.Field] = append(d.values[v.Field], v.Number)
		case v.Exact:
			add(v.Field, v.Text, base)
		default:
			for _, t := range x.tokens(v.Field, v.Text) {
				add(v.Field, t.text, base+t.position)
			}
		}
	}
	x.docs[id] = d
}

// Remove removes a document.
func (x *Index) Remove(id string) { delete(x.docs, id) }

// Find returns the ids of the documents that match, ascending. Sure is false when terms
// that documents have had decide which of them a fuzzy word stands for.
func (x *Index) Find(q syntax.Query) (ids []string, sure bool) {
	c := compiler{x: x, sure: true}
	match := c.compile(q)
	if match == nil {
		return nil, c.sure
	}
	for id, d := range x.docs {
		if match(d) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, c.sure
}

func (x *Index) number(term string) int {
	n, ok := x.numbers[term]
	if !ok {
		n = len(x.terms)
		x.numbers[term], x.terms = n, append(x.terms, term)
	}
	return n
}

// token is the result of analysing a part of a text.
type token struct {
	text     string
	position int
}

func (x *Index) tokens(field, text string) (out []token) {
	var s analysis.Stream
	s.Reset(x.o.Analyzers.Of(field), text)
	for t, ok := s.Next(); ok; t, ok = s.Next() {
		out = append(out, token{string(t.Term), t.Position})
	}
	return out
}
