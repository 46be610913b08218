package search

import (
	"bytes"

	"divan/shard/search/automaton"
	"divan/shard/search/syntax"
)

// matching accepts the terms that match a pattern, of which none is below from.
func (c *compiler) matching(pattern string) (accept func([]byte) (verdict, error), from string, err error) {
	m, err := automaton.Compile(pattern, c.def.Dialect == syntax.Nouveau)
	if err != nil {
		return nil, "", err
	}
	from = m.Prefix()
	prefix := []byte(from)
	return func(term []byte) (verdict, error) {
		if !bytes.HasPrefix(term, prefix) {
			return behind, nil
		}
		if ok, err := m.Match(term); !ok || err != nil {
			return refused, err
		}
		return accepted, nil
	}, from, nil
}
