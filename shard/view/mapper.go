package view

import (
	"context"
	"errors"
	"strings"

	"divan/shard/index"
	"divan/shard/query"
	"divan/shard/script"
	"divan/storage/fault"
)

// mapper runs the map functions of a definition.
type mapper interface {
	// run makes the rows of documents, up to where there is no space, or one fails.
	run(ctx context.Context, m *mapped, docs []index.Doc) error
	close()
}

// newMapper compiles the map functions, for an instance of a database.
func newMapper(ctx context.Context, d *Definition, trees []tree, scripts *script.Engine, instance string) (mapper, error) {
	switch {
	case script.Speaks(d.Language):
		p := script.Program{Instance: instance, Lib: d.Lib}
		for _, t := range trees {
			p.Maps = append(p.Maps, t.source)
		}
		m, err := scripts.Mapper(ctx, p)
		if err != nil {
			return nil, err
		}
		return &scriptMapper{def: d, trees: trees, m: m}, nil
	case d.Language == Query:
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
	if len(docs) == 0 {
		return nil
	}
	vm, err := s.m.Acquire(ctx)
	if err != nil {
		return err
	}
	defer s.m.Release(vm)
	rows := scriptRows{m: m, trees: s.trees}
	for i := range docs {
		d := &docs[i]
		m.begin(d.ID)
		if d.Doc != nil && !s.def.skips(d.ID) {
			m.text = s.def.appendDocument(m.text[:0], d.Seq, d.Doc)
			if err := vm.Map(ctx, m.text, &rows); err != nil {
				m.abandon()
				if m.refused || (i > 0 || !vm.Fresh()) && script.OutOfMemory(err) { // what others left in the VM may be the reason: it gets another
					return nil
				}
				return s.failed(ctx, d.ID, err)
			}
		}
		if m.end(); m.space.Full() {
			return nil
		}
	}
	return nil
}

// failed is the error of a document.
func (s *scriptMapper) failed(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	out := &index.DocumentError{ID: id, Function: "map functions", Err: err, LeftOut: script.OfDocument(err)}
	out.Bare = !out.LeftOut && fault.Is(err, fault.BadFunction) // CouchDB's own text
	var in *script.FunctionError
	if errors.As(err, &in) {
		out.Function, out.Err = s.def.functionOf(&s.trees[in.Function]), in.Err
	}
	return out
}

// functionOf names the map function of a tree.
func (d *Definition) functionOf(t *tree) string {
	var names []string
	for _, v := range d.Views {
		if v.Map == t.source && v.Raw == t.raw {
			names = append(names, v.Name)
		}
	}
	return "map function of " + strings.Join(names, ", ")
}

// scriptRows takes what the functions emit.
type scriptRows struct {
	m     *mapped
	trees []tree
}

// Emit implements script.Rows.
func (r *scriptRows) Emit(fn int, key, value []byte) error { return r.m.emit(&r.trees[fn], key, value) }

// Drop implements script.Rows.
func (r *scriptRows) Drop(fn int) { r.m.drop(fn) }

// queryMapper makes the keys of Mango indexes, whose values are null.
type queryMapper struct {
	def   *Definition
	trees []tree
	keys  []*query.Key
}

func (q *queryMapper) close() {}

func (q *queryMapper) run(ctx context.Context, m *mapped, docs []index.Doc) error {
	work := query.NewWork(ctx, nil)
	for i := range docs {
		d := &docs[i]
		m.begin(d.ID)
		if d.Doc != nil && !q.def.skips(d.ID) {
			if err := q.keysOf(work, m, d); err != nil {
				m.abandon()
				switch {
				case m.refused:
					return nil
				case ctx.Err() != nil:
					return ctx.Err()
				}
				return index.DefinitionError(d.ID, err)
			}
		}
		if m.end(); m.space.Full() {
			return nil
		}
	}
	return ctx.Err()
}

// keysOf emits the keys of a document.
func (q *queryMapper) keysOf(work *query.Work, m *mapped, d *index.Doc) error {
	m.text = q.def.appendDocument(m.text[:0], d.Seq, d.Doc)
	for tree, k := range q.keys {
		key, ok, err := k.Append(work, m.key[:0], m.text)
		if m.key = key; err != nil {
			return err
		}
		if ok {
			if err := m.emit(&q.trees[tree], key, []byte("null")); err != nil {
				return err
			}
		}
	}
	return nil
}
