package search

import (
	"encoding/json"
	"errors"

	"divan/shard/search/analysis"
	"divan/shard/search/highlight"
	"divan/shard/search/syntax"
)

// highlight adds to a hit the pieces of its stored fields in which something was found.
func (e *evaluation) highlight(hit *Hit) error {
	h := e.req.Highlight
	if h == nil {
		return nil
	}
	if e.marked == nil {
		e.marked = &highlight.Query{Terms: map[string]struct{}{}}
		if err := e.wanted(e.query); err != nil {
			return err
		}
	}
	for _, field := range h.Fields {
		if err := e.turn.check(); err != nil { // a stored text may be long
			return err
		}
		var pieces []highlight.Piece
		taken := 0
		for i := range hit.Fields {
			var text string
			if hit.Fields[i].Name != field || json.Unmarshal(hit.Fields[i].Value, &text) != nil {
				continue
			}
			style := highlight.Style{Before: h.Before, After: h.After, Size: max(1, h.Size), Most: e.room.most()}
			more, err := e.marked.Pieces(e.ctx, text, e.textTokens(field, text), style)
			if errors.Is(err, highlight.ErrTooLarge) {
				return errNoRoom()
			}
			if err != nil {
				return err
			}
			for i := range more {
				bytes := storedBytes + len(more[i].Text)
				taken += bytes
				if err := e.room.Take(bytes); err != nil {
					return err
				}
			}
			pieces = append(pieces, more...)
		}
		out := Highlighted{field, highlight.Best(pieces, h.Number)}
		e.room.Give(taken) // but the best are kept
		bytes := storedBytes
		for _, p := range out.Pieces {
			bytes += storedBytes + len(p)
		}
		if err := e.room.Take(bytes); err != nil {
			return err
		}
		hit.Highlights = append(hit.Highlights, out)
	}
	return nil
}

// textTokens analyses a stored text.
func (e *evaluation) textTokens(field, text string) (out []highlight.Token) {
	var s analysis.Stream
	s.Reset(e.def.Analyzers.Of(field), text)
	for t, ok := s.Next(); ok && len(out) < highlight.MaxTokens; t, ok = s.Next() {
		out = append(out, highlight.Token{Term: string(t.Term), Position: t.Position, Start: t.Start, End: t.End})
	}
	return out
}

// wanted notes the terms of a query, but not those that hits must not have. They are looked
// for in any field.
func (e *evaluation) wanted(q syntax.Query) error {
	switch q := q.(type) {
	case syntax.Boosted:
		return e.wanted(q.Query)
	case *syntax.Boolean:
		for _, c := range q.Clauses {
			if c.Modifier != syntax.Negated {
				if err := e.wanted(c.Query); err != nil {
					return err
				}
			}
		}
	case syntax.Term:
		for _, t := range e.tokens(q.Field, q.Text) {
			e.marked.Terms[string(t.term)] = struct{}{}
		}
	case syntax.Phrase:
		e.wantedPhrase(q)
	case syntax.Fuzzy:
		text := e.def.Analyzers.Of(q.Field).Normalize(q.Text)
		if q.Edits == 0 {
			e.marked.Terms[text] = struct{}{}
			return nil
		}
		d := distance{word: []rune(text), most: q.Edits}
		e.marked.Accept = append(e.marked.Accept, func(term []byte) (bool, error) {
			_, ok := d.of(term)
			return ok, nil
		})
	default:
		n, err := e.pattern(q, 1)
		if n == nil || err != nil {
			return err
		}
		from := n.from
		e.marked.Accept = append(e.marked.Accept, func(term []byte) (bool, error) {
			if string(term) < from {
				return false, nil
			}
			v, err := n.accept(term)
			return v == accepted, err
		})
	}
	return nil
}

func (e *evaluation) wantedPhrase(q syntax.Phrase) {
	tokens := e.tokens(q.Field, q.Text)
	if len(tokens) == 1 {
		e.marked.Terms[string(tokens[0].term)] = struct{}{}
	}
	if len(tokens) < 2 {
		return
	}
	p := highlight.Phrase{Slop: q.Slop}
	for _, t := range tokens {
		p.Words = append(p.Words, highlight.Word{Term: string(t.term), Place: t.position - tokens[0].position})
	}
	e.marked.Phrases = append(e.marked.Phrases, p)
}
