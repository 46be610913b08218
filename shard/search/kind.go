package search

import (
	"context"
	"errors"
	"strings"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/search/analysis"
	"divan/shard/search/postings"
	"divan/storage"
	"divan/storage/fault"
)

// Field is a value that an Indexer made of a document. A document may have several of one
// name.
type Field struct {
	Name   string
	Text   string  // unless it is a number
	Number float64 // if IsNumber

	IsNumber bool
	Indexed  bool    // queries find it
	Exact    bool    // the text is one term as it is, not analyzed
	Facet    bool    // it is counted: a text by its value, a number by ranges
	Boost    float64 // of an analyzed text of _search: its terms weigh so many times as much; 0: as they are
	Stored   []byte  // JSON, given out with hits; nil: it is not stored

	// Type is the type of all fields of the name, of _nouveau: the first document that has
	// the field sets it, and a document with another type stops the index. Of _search it
	// is Untyped.
	Type postings.FieldType
}

// Indexer makes fields of documents. It is safe for concurrent use.
type Indexer interface {
	// Index appends the fields of a document. An error is an index.DocumentError if the
	// document is the reason.
	Index(ctx context.Context, dst []Field, d *shard.Doc) ([]Field, error)
	// Close is called when the index is used no more.
	Close()
}

// searchIndex is the index.Kind of full-text indexes.
type searchIndex struct {
	def        *Definition
	indexer    Indexer
	chunkBytes uint64
	w          *postings.Writer // of the update that runs
}

// Begin implements index.Kind.
func (k *searchIndex) Begin(_ context.Context, x *storage.Index, _ uint64) (reads bool, err error) {
	k.w, err = postings.NewWriter(x, k.chunkBytes)
	return false, err
}

// Map implements index.Kind.
func (k *searchIndex) Map(ctx context.Context, docs []index.Doc, space *index.Space) (index.Mapped, int, error) {
	m := &mapper{def: k.def, indexer: beginBatch(k.indexer), positions: map[string]int{}}
	defer m.indexer.End()
	n, taken := 0, 0
	for ; n < len(docs) && n < postings.MaxDocs && !space.Full(); n++ {
		if err := ctx.Err(); err != nil {
			return m.out.Finish(), n, err
		}
		d := &docs[n]
		if d.Doc == nil || strings.HasPrefix(d.ID, "_design/") && !k.def.IncludesDesign() {
			m.out.Delete(d.ID)
			continue
		}
		if err := m.document(ctx, d); err != nil {
			return m.out.Finish(), n, err
		}
		if len(m.fields) == 0 { // what has no field is not there
			m.out.Delete(d.ID)
			continue
		}
		size := m.out.Size()
		if !space.Take(size - taken) {
			break
		}
		taken = size
		m.out.Keep()
	}
	return m.out.Finish(), n, nil
}

// mapper makes postings of documents.
type mapper struct {
	def       *Definition
	indexer   Batch
	out       postings.Inverter
	fields    []Field
	stream    analysis.Stream
	positions map[string]int // behind the last term of a field of the document
}

func (m *mapper) document(ctx context.Context, d *index.Doc) (err error) {
	if m.fields, err = m.indexer.Index(ctx, m.fields[:0], d.Doc); err != nil {
		return err
	}
	m.out.Begin(d.ID)
	clear(m.positions)
	for i := range m.fields {
		f := &m.fields[i]
		if f.Type != postings.Untyped {
			if err := m.out.Type(f.Name, f.Type); err != nil {
				return wrongType(err)
			}
		}
		switch {
		case f.IsNumber:
			m.number(f)
		case f.Indexed && f.Exact:
			m.exact(f)
		case f.Indexed:
			m.text(f)
		}
		if f.Facet && !f.IsNumber && f.Text != "" {
			m.out.Facet(f.Name, f.Text)
		}
		if f.Stored != nil {
			m.out.Store(f.Name, f.Stored)
		}
	}
	return nil
}

func (m *mapper) number(f *Field) {
	if f.Indexed {
		m.out.Number(f.Name, f.Number)
	}
	if f.Facet && f.Type == postings.Untyped { // of _nouveau all are
		m.out.NumberFacet(f.Name, f.Number)
	}
}

// exact adds a value behind the terms that its field has.
func (m *mapper) exact(f *Field) {
	at := m.positions[f.Name]
	m.positions[f.Name] = at + 1
	if f.Type == postings.Untyped {
		m.out.Term(f.Name, []byte(f.Text), at)
		return
	}
	m.out.Value(f.Name, []byte(f.Text), at)
}

// text adds the terms of a field behind those that it has.
func (m *mapper) text(f *Field) {
	base := m.positions[f.Name]
	m.stream.Reset(m.def.Analyzers.Of(f.Name), f.Text)
	for t, ok := m.stream.Next(); ok; t, ok = m.stream.Next() {
		m.out.Term(f.Name, t.Term, base+t.Position)
		m.positions[f.Name] = base + t.Position + 1
	}
	if f.Boost > 0 && m.positions[f.Name] > base {
		m.out.Boost(f.Name, f.Boost)
	}
}

// wrongType makes of a *postings.WrongType what stops the index.
func wrongType(err error) error {
	var wrong *postings.WrongType
	if !errors.As(err, &wrong) {
		return err
	}
	return &index.DocumentError{ID: wrong.ID, Function: "index function", Err: fault.New(fault.BadRequest, wrong.Error()), Bare: true}
}

// Apply implements index.Kind.
func (k *searchIndex) Apply(b *storage.IndexBatch, m index.Mapped, _ int, fresh bool) (n int, err error) {
	in := m.(*postings.Inverted)
	return in.Docs(), wrongType(k.w.Apply(b, in, fresh))
}

// Flush implements index.Gatherer.
func (k *searchIndex) Flush(b *storage.IndexBatch) error { return k.w.Flush(b) }

// End implements index.Kind.
func (k *searchIndex) End(ctx context.Context, _ *storage.Index) error {
	if k.w == nil { // there was nothing to do
		return nil
	}
	return k.w.Empty(ctx)
}

// Rest implements index.Kind.
func (k *searchIndex) Rest() { k.w = nil }

// Close implements index.Kind.
func (k *searchIndex) Close() { k.indexer.Close() }
