// Package highlight cuts the pieces out of a text in which words of a query are, and wraps
// those (spec/search.md 8.9). It is pure.
package highlight

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxTokens is how many tokens of a text are looked at.
const MaxTokens = 100_000

// Token is a word of a text.
type Token struct {
	Term       string
	Position   int // ascending
	Start, End int // bytes of the text
}

// Word is one of a phrase, and where in the phrase it is.
type Word struct {
	Term  string
	Place int
}

// Phrase is words at places that are right up to Slop moves. The places ascend from 0 on.
type Phrase struct {
	Words []Word
	Slop  int
}

// Query says which words are wrapped.
type Query struct {
	Terms   map[string]struct{}
	Accept  []func(term []byte) (bool, error) // for patterns and ranges
	Phrases []Phrase
}

// Style says how words are wrapped and texts are cut.
type Style struct {
	Before, After string
	Size          int // of a piece in characters, about
	Most          int // bytes of all pieces together
}

// Piece is a part of a text with words that are wrapped.
type Piece struct {
	Text  string
	Score int // different terms in it
}

// ErrTooLarge is returned when the pieces of a text have more than Style.Most bytes.
var ErrTooLarge = errors.New("the pieces of a text are too large")

// Pieces returns the parts of a text that have a word of a query, in their order. A part
// ends behind a token; it is longer when a token is. An error is ErrTooLarge, or that of the
// context or of Accept.
func (q *Query) Pieces(ctx context.Context, text string, tokens []Token, s Style) ([]Piece, error) {
	hit, err := q.hits(ctx, tokens)
	if err != nil {
		return nil, err
	}
	wrapped := len(text)
	for i := range hit {
		if hit[i] {
			if wrapped += len(s.Before) + len(s.After); wrapped > s.Most {
				return nil, ErrTooLarge
			}
		}
	}
	var out []Piece
	var b strings.Builder
	terms := map[string]struct{}{}
	end := func(rest string) {
		b.WriteString(rest)
		if len(terms) > 0 {
			out = append(out, Piece{b.String(), len(terms)})
		}
		b.Reset()
		clear(terms)
	}
	done, characters, parts := 0, 0, 1 // bytes that were written; characters before them, of all parts
	for i, t := range tokens {
		if t.Start < done || t.End < t.Start || t.End > len(text) { // pairs of characters overlap
			if !hit[i] || t.End <= done || t.End > len(text) {
				continue
			}
			t.Start = done
		}
		characters += utf8.RuneCountInString(text[done:t.End])
		if characters >= s.Size*parts && i > 0 {
			end("")
			parts = characters/s.Size + 1
		}
		b.WriteString(text[done:t.Start])
		if hit[i] {
			terms[t.Term] = struct{}{}
			b.WriteString(s.Before + text[t.Start:t.End] + s.After)
		} else {
			b.WriteString(text[t.Start:t.End])
		}
		done = t.End
	}
	end(text[done:])
	return out, nil
}

// Best returns the texts of the pieces with most terms, the best first, at most so many.
func Best(pieces []Piece, number int) []string {
	slices.SortStableFunc(pieces, func(a, b Piece) int { return cmp.Compare(b.Score, a.Score) })
	out := []string{}
	for _, p := range pieces[:min(len(pieces), number)] {
		out = append(out, p.Text)
	}
	return out
}

// hits says which tokens are words of the query.
func (q *Query) hits(ctx context.Context, tokens []Token) ([]bool, error) {
	out := make([]bool, len(tokens))
	for i := range tokens {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, out[i] = q.Terms[tokens[i].Term]; out[i] {
			continue
		}
		for _, accept := range q.Accept {
			ok, err := accept([]byte(tokens[i].Term))
			if err != nil {
				return nil, err
			}
			out[i] = out[i] || ok
		}
	}
	if len(q.Phrases) == 0 {
		return out, nil
	}
	places := map[string][]int{} // tokens of a term
	for i := range tokens {
		places[tokens[i].Term] = append(places[tokens[i].Term], i)
	}
	for i := range q.Phrases {
		if err := q.Phrases[i].mark(ctx, tokens, places, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkEvery is how many tokens are looked at between two looks at the context.
const checkEvery = 1024

// mark marks the tokens of all occurrences of a phrase.
func (p *Phrase) mark(ctx context.Context, tokens []Token, places map[string][]int, out []bool) error {
	var starts []int
	distinct := 0
	for i, w := range p.Words {
		if i > 0 && p.Slop == 0 { // it begins with the first word
			break
		}
		for _, t := range places[w.Term] {
			starts = append(starts, tokens[t].Position-w.Place)
		}
		if len(starts) > 2*distinct { // a phrase that has a word often begins at the same places
			slices.Sort(starts)
			starts = slices.Compact(starts)
			distinct = len(starts)
		}
		if i%16 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	slices.Sort(starts)
	chosen, before := make([]int, len(p.Words)), p.before()
	looked := 0
	for _, start := range slices.Compact(starts) {
		n, ok := p.at(start, tokens, places, before, chosen)
		if ok {
			for i, at := range chosen {
				out[places[p.Words[i].Term][at]] = true
			}
		}
		if looked += n; looked > checkEvery {
			if looked = 0; ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// before returns for each word where the phrase has it the last time before; -1: it has not.
func (p *Phrase) before() []int {
	out, last := make([]int, len(p.Words)), map[string]int{}
	for i, w := range p.Words {
		out[i] = -1
		if at, ok := last[w.Term]; ok {
			out[i] = at
		}
		last[w.Term] = i
	}
	return out
}

// at chooses the tokens of the phrase that begins at a position, each by its number among those
// of its term, and returns how many words it looked at. No token is used twice: equal words have ascending places.
func (p *Phrase) at(start int, tokens []Token, places map[string][]int, before, chosen []int) (looked int, ok bool) {
	for i, w := range p.Words {
		list := places[w.Term]
		at, _ := slices.BinarySearchFunc(list, start+w.Place, func(t, position int) int { return cmp.Compare(tokens[t].Position, position) })
		if b := before[i]; b >= 0 {
			at = max(at, chosen[b]+1)
		}
		if at == len(list) || tokens[list[at]].Position > start+w.Place+p.Slop {
			return i + 1, false
		}
		chosen[i] = at
	}
	return len(p.Words), true
}
