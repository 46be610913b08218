package indexer

import (
	"context"
	"errors"
	"strings"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/script"
	"divan/shard/search"
	"divan/shard/search/postings"
	"divan/shard/search/syntax"
	"divan/storage/doc"
	"divan/storage/fault"
)

// function is the Indexer of an index function.
type function struct {
	def    *search.Definition
	mapper *script.Mapper
}

func newFunction(ctx context.Context, scripts *script.Engine, instance string, d *search.Definition) (search.Indexer, error) {
	source, ok := doc.Unquote(d.Function)
	if !ok {
		return nil, fault.New(fault.InvalidDesignDoc, "an index function that is no text")
	}
	p := script.Program{Instance: instance, Maps: []string{source}, IndexArguments: 2}
	if d.Dialect == syntax.Nouveau {
		p.IndexArguments = 3
	}
	m, err := scripts.Mapper(ctx, p)
	if err != nil {
		return nil, err
	}
	return &function{d, m}, nil
}

// Begin implements search.Batched.
func (f *function) Begin() search.Batch {
	b := &batch{function: f}
	b.calls.nouveau = f.def.Dialect == syntax.Nouveau
	return b
}

// Index implements search.Indexer.
func (f *function) Index(ctx context.Context, dst []search.Field, d *shard.Doc) ([]search.Field, error) {
	b := f.Begin()
	defer b.End()
	return b.Index(ctx, dst, d)
}

// Close implements search.Indexer.
func (f *function) Close() { f.mapper.Close() }

// batch is a VM for some documents.
type batch struct {
	*function
	vm    *script.MapVM // nil: none is taken
	used  bool          // it has run for a document
	text  []byte
	calls calls
}

// End implements search.Batch.
func (b *batch) End() {
	if b.vm != nil {
		b.mapper.Release(b.vm)
		b.vm = nil
	}
}

// Index implements search.Batch.
func (b *batch) Index(ctx context.Context, dst []search.Field, d *shard.Doc) ([]search.Field, error) {
	if strings.HasPrefix(d.ID, doc.DesignPrefix) && !b.def.IncludesDesign() {
		return dst, nil
	}
	b.text = shard.AppendDoc(b.text[:0], d)
	b.calls.begin(dst)
	defer b.calls.forget()
	if err := b.run(ctx, d.ID); err != nil {
		return dst, err
	}
	if b.calls.unusable != nil {
		return dst, failed(ctx, d.ID, b.calls.unusable)
	}
	out := b.calls.fields
	if b.def.Partitioned && len(out) > len(dst) {
		out = append(out, partitionField(d.ID, b.calls.nouveau))
	}
	return out, nil
}

// run has the function called. If there is no memory, what others left in the VM may be the
// reason: it is called in another one.
func (b *batch) run(ctx context.Context, id string) error {
	for {
		if b.vm == nil {
			vm, err := b.mapper.Acquire(ctx)
			if err != nil {
				return err
			}
			b.vm, b.used = vm, false
		}
		err := b.vm.Index(ctx, b.text, &b.calls)
		if err == nil {
			b.used = true
			return nil
		}
		used := b.used || !b.vm.Fresh()
		b.End() // it cannot go on
		if !used || !script.OutOfMemory(err) {
			return failed(ctx, id, err)
		}
		b.calls.Drop(0)
	}
}

// failed is the error of a document.
func failed(ctx context.Context, id string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var in *script.FunctionError
	if errors.As(err, &in) {
		err = in.Err
	}
	return &index.DocumentError{ID: id, Function: "index function", Err: err, LeftOut: script.OfDocument(err)}
}

// partitionField is the partition of a document, as an exact field.
func partitionField(id string, nouveau bool) search.Field {
	partition, _, _ := strings.Cut(id, ":")
	f := search.Field{Name: "_partition", Text: partition, Indexed: true, Exact: true}
	if nouveau {
		f.Type = postings.StringType
	}
	return f
}
