package view

import (
	"context"
	"fmt"

	"divan/shard/index"
	"divan/shard/query"
	"divan/shard/script"
	"divan/storage/fault"
)

// mapper runs the map functions of a definition.
type mapper interface {
	// run makes the rows of documents.
	run(ctx context.Context, m *mapped, docs []index.Doc) error
	close()
}

// newMapper compiles the map functions.
func newMapper(d *Definition, trees []tree, scripts *script.Engine) (mapper, error) {
	switch d.Language {
	case JavaScript:
		p := script.Program{Lib: d.Lib}
		for _, t := range trees {
			p.Maps = append(p.Maps, t.source)
		}
		m, err := scripts.Mapper(p)
		if err != nil {
			return nil, err
		}
		return &scriptMapper{def: d, trees: trees, m: m}, nil
	case Query:
		m := &queryMapper{def: d, trees: trees}
		for _, t := range trees {
			k, err := query.ParseKey([]byte(t.source))
			if err != nil {
				return nil, err
			}
			m.keys = append(m.keys, k)
		}
		return m, nil
	}
	return nil, &fault.Error{Kind: fault.Internal, Code: "unknown_query_language", Reason: d.Language}
}

// scriptMapper runs JavaScript.
type scriptMapper struct {
	def   *Definition
	trees []tree
	m     *script.Mapper
}

func (s *scriptMapper) close() { s.m.Close() }

func (s *scriptMapper) run(ctx context.Context, m *mapped, docs []index.Doc) error {
	vm, err := s.m.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.m.Release(vm)
	id := ""
	emit := func(tree int, key, value []byte) { m.emit(id, &s.trees[tree], key, value) }
	for i := range docs {
		d := &docs[i]
		id = d.ID
		if d.Doc != nil && !s.def.skips(id) {
			m.text = s.def.appendDocument(m.text[:0], d.Seq, d.Doc)
			if err := vm.Map(ctx, m.text, emit); err != nil {
				return err
			}
		}
		m.end(id)
	}
	return nil
}

// queryMapper makes the keys of Mango indexes, whose values are null.
type queryMapper struct {
	def   *Definition
	trees []tree
	keys  []*query.Key
}

func (q *queryMapper) close() {}

func (q *queryMapper) run(ctx context.Context, m *mapped, docs []index.Doc) error {
	var key []byte
	work := query.NewWork(ctx, nil)
	for i := range docs {
		d := &docs[i]
		if d.Doc != nil && !q.def.skips(d.ID) {
			m.text = q.def.appendDocument(m.text[:0], d.Seq, d.Doc)
			for tree, k := range q.keys {
				var ok bool
				var err error
				if key, ok, err = k.Append(work, key[:0], m.text); err != nil {
					return fmt.Errorf("document %q: %w", d.ID, err)
				}
				if ok {
					m.emit(d.ID, &q.trees[tree], key, []byte("null"))
				}
			}
		}
		m.end(d.ID)
	}
	return ctx.Err()
}
