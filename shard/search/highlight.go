package search

import (
	"encoding/json"
	"errors"

	"divan/shard/search/analysis"
	"divan/shard/search/highlight"
	"divan/shard/search/syntax"
)

// highlighter marks in stored fields what a query looks for.
type highlighter struct {
	scan     *scan
	compiler *compiler
	query    syntax.Query
	req      *Highlight       // nil: nothing is marked
	marked   *highlight.Query // what is highlighted, when it is known
}

// highlight adds to a hit the pieces of its stored fields in which something was found.
func (m *highlighter) highlight(hit *Hit) error {
	h := m.req
	if h == nil {
		return nil
	}
	if m.marked == nil {
		m.marked = &highlight.Query{Terms: map[string]struct{}{}}
		if err := m.wanted(m.query); err != nil {
			return err
		}
	}
	for _, field := range h.Fields {
		if err := m.scan.turn.check(); err != nil { // a stored text may be long
			return err
		}
		var pieces []highlight.Piece
		taken := 0
		for i := range hit.Fields {
			var text string
			if hit.Fields[i].Name != field || json.Unmarshal(hit.Fields[i].Value, &text) != nil {
				continue
			}
			style := highlight.Style{Before: h.Before, After: h.After, Size: max(1, h.Size), Most: m.scan.space.most()}
			more, err := m.marked.Pieces(m.scan.ctx, text, m.textTokens(field, text), style)
			if errors.Is(err, highlight.ErrTooLarge) {
				return errNoSpace()
			}
			if err != nil {
				return err
			}
			for i := range more {
				bytes := storedBytes + len(more[i].Text)
				taken += bytes
				if err := m.scan.space.Take(bytes); err != nil {
					return err
				}
			}
			pieces = append(pieces, more...)
		}
		out := Highlighted{field, highlight.Best(pieces, h.Number)}
		m.scan.space.Give(taken) // but the best are kept
		bytes := storedBytes
		for _, p := range out.Pieces {
			bytes += storedBytes + len(p)
		}
		if err := m.scan.space.Take(bytes); err != nil {
			return err
		}
		hit.Highlights = append(hit.Highlights, out)
	}
	return nil
}

// textTokens analyses a stored text.
func (m *highlighter) textTokens(field, text string) (out []highlight.Token) {
	var s analysis.Stream
	s.Reset(m.compiler.def.Analyzers.Of(field), text)
	for t, ok := s.Next(); ok && len(out) < highlight.MaxTokens; t, ok = s.Next() {
		out = append(out, highlight.Token{Term: string(t.Term), Position: t.Position, Start: t.Start, End: t.End})
	}
	return out
}

// wanted notes the terms of a query, but not those that hits must not have. They are looked
// for in any field.
func (m *highlighter) wanted(q syntax.Query) error {
	switch q := q.(type) {
	case syntax.Boosted:
		return m.wanted(q.Query)
	case *syntax.Boolean:
		for _, c := range q.Clauses {
			if c.Modifier != syntax.Negated {
				if err := m.wanted(c.Query); err != nil {
					return err
				}
			}
		}
	case syntax.Term:
		for _, t := range m.compiler.tokens(q.Field, q.Text) {
			m.marked.Terms[string(t.term)] = struct{}{}
		}
	case syntax.Phrase:
		m.wantedPhrase(q)
	case syntax.Fuzzy:
		text := m.compiler.def.Analyzers.Of(q.Field).Normalize(q.Text)
		if q.Edits == 0 {
			m.marked.Terms[text] = struct{}{}
			return nil
		}
		d := distance{word: []rune(text), most: q.Edits}
		m.marked.Accept = append(m.marked.Accept, func(term []byte) (bool, error) {
			_, ok := d.of(term)
			return ok, nil
		})
	default:
		n, err := m.compiler.pattern(q, 1)
		if n == nil || err != nil {
			return err
		}
		from := n.from
		m.marked.Accept = append(m.marked.Accept, func(term []byte) (bool, error) {
			if string(term) < from {
				return false, nil
			}
			v, err := n.accept(term)
			return v == accepted, err
		})
	}
	return nil
}

func (m *highlighter) wantedPhrase(q syntax.Phrase) {
	tokens := m.compiler.tokens(q.Field, q.Text)
	if len(tokens) == 1 {
		m.marked.Terms[string(tokens[0].term)] = struct{}{}
	}
	if len(tokens) < 2 {
		return
	}
	p := highlight.Phrase{Slop: q.Slop}
	for _, t := range tokens {
		p.Words = append(p.Words, highlight.Word{Term: string(t.term), Place: t.position - tokens[0].position})
	}
	m.marked.Phrases = append(m.marked.Phrases, p)
}
