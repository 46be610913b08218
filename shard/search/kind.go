package search

import (
	"context"
	"strings"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/search/postings"
	"divan/storage"
)

// Field is a value that an Indexer made of a document. A document may have several of one
// name.
type Field struct {
	Name   string
	Text   string  // unless it is a number
	Number float64 // if IsNumber

	IsNumber bool
	Indexed  bool   // queries find it
	Facet    bool   // it is counted
	Stored   []byte // JSON, given out with hits; nil: it is not stored
}

// Indexer makes fields of documents. It is safe for concurrent use.
type Indexer interface {
	// Index appends the fields of a document. An error is an index.DocumentError if the
	// document is the reason.
	Index(ctx context.Context, dst []Field, d *shard.Doc) ([]Field, error)
	// Close is called when the index is used no more.
	Close()
}

// Definition says what an index holds.
type Definition struct {
	Signature string
	Design    string // the design document, for tasks
	Indexer   Indexer
	Analyzer  func(field string) Analyzer // safe for concurrent use
}

func (d *Definition) name() index.Name { return index.Name{Type: index.Search, Signature: d.Signature} }

// searchIndex is the index.Kind of full-text indexes.
type searchIndex struct {
	def *Definition
	w   *postings.Writer // of the update that runs
}

// Begin implements index.Kind.
func (k *searchIndex) Begin(_ context.Context, x *storage.Index, _ uint64) (reads bool, err error) {
	k.w, err = postings.NewWriter(x)
	return false, err
}

// Map implements index.Kind.
func (k *searchIndex) Map(ctx context.Context, docs []index.Doc, room *index.Room) (index.Mapped, int, error) {
	m := &mapper{def: k.def, positions: map[string]int{}}
	n, taken := 0, 0
	for ; n < len(docs) && n < postings.MaxDocs && !room.Full(); n++ {
		if err := ctx.Err(); err != nil {
			return m.out.Finish(), n, err
		}
		d := &docs[n]
		if d.Doc == nil || strings.HasPrefix(d.ID, "_design/") {
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
		if !room.Take(size - taken) {
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
	out       postings.Inverter
	fields    []Field
	tokens    []Token
	positions map[string]int // behind the last term of a field of the document
}

func (m *mapper) document(ctx context.Context, d *index.Doc) (err error) {
	if m.fields, err = m.def.Indexer.Index(ctx, m.fields[:0], d.Doc); err != nil {
		return err
	}
	m.out.Begin(d.ID)
	clear(m.positions)
	for i := range m.fields {
		f := &m.fields[i]
		switch {
		case f.Indexed && f.IsNumber:
			m.out.Number(f.Name, f.Number)
		case f.Indexed:
			m.text(f)
		}
		if f.Facet && !f.IsNumber {
			m.out.Facet(f.Name, f.Text)
		}
		if f.Stored != nil {
			m.out.Store(f.Name, f.Stored)
		}
	}
	return nil
}

// text adds the terms of a field behind those that it has.
func (m *mapper) text(f *Field) {
	base := m.positions[f.Name]
	m.tokens = m.def.Analyzer(f.Name).Tokens(m.tokens[:0], f.Text)
	for i := range m.tokens {
		t := &m.tokens[i]
		m.out.Term(f.Name, t.Term, base+t.Position)
		m.positions[f.Name] = base + t.Position + 1
	}
}

// Apply implements index.Kind.
func (k *searchIndex) Apply(b *storage.IndexBatch, m index.Mapped, _ int, fresh bool) (n int, err error) {
	in := m.(*postings.Inverted)
	return in.Docs(), k.w.Apply(b, in, fresh)
}

// End implements index.Kind.
func (k *searchIndex) End(context.Context, *storage.Index) error { return nil }

// Rest implements index.Kind.
func (k *searchIndex) Rest() { k.w = nil }

// Close implements index.Kind.
func (k *searchIndex) Close() { k.def.Indexer.Close() }
