package indexer

import (
	"context"
	"strings"

	"divan/shard"
	"divan/shard/index"
	"divan/shard/query"
	"divan/shard/search"
	"divan/storage/doc"
	"divan/storage/fault"
)

// mango is the Indexer of an index of Mango: its fields are those of the document.
type mango struct {
	partitioned bool
	filter      *query.Selector     // nil: every document
	fields      map[string]struct{} // the names of those that are indexed; nil: all
	text        bool                // $default has every string again
	lengths     bool                // the lengths of arrays are indexed
}

// newMango reads the object "index" of a definition.
func newMango(d *search.Definition) (search.Indexer, error) {
	m := &mango{partitioned: d.Partitioned, text: true, lengths: string(doc.Lookup(d.Function, "index_array_lengths")) != "false"}
	switch of := doc.Lookup(d.Function, "default_field"); {
	case string(of) == "false":
		m.text = false
	case doc.IsObject(of):
		m.text = string(doc.Lookup(of, "enabled")) != "false"
	}
	for _, name := range []string{"partial_filter_selector", "selector"} {
		of := doc.Lookup(d.Function, name)
		if !doc.IsObject(of) || len(of) == len("{}") {
			continue
		}
		var err error
		if m.filter, err = query.Parse(of); err != nil {
			return nil, err
		}
		break
	}
	fields := doc.Lookup(d.Function, "fields")
	if fields == nil || string(fields) == `"all_fields"` || string(fields) == "[]" {
		return m, nil
	}
	return m, m.restrict(fields)
}

// restrict reads the list of the fields that are indexed.
func (m *mango) restrict(fields []byte) error {
	m.fields = map[string]struct{}{}
	if !doc.IsArray(fields) {
		return fault.New(fault.InvalidDesignDoc, "`fields` of a text index must be a list")
	}
	return doc.EachElement(fields, func(field []byte) error {
		var path string
		var ok bool
		if doc.IsObject(field) {
			path, ok = doc.Unquote(doc.Lookup(field, "name"))
		}
		if !ok {
			return fault.New(fault.InvalidDesignDoc, "A field of a text index must have a name and a type.")
		}
		name, err := query.AppendTextPath(nil, path)
		if err != nil {
			return err
		}
		switch t, _ := doc.Unquote(doc.Lookup(field, "type")); t {
		case "string", "text":
			name = append(name, query.TextString...)
		case "number":
			name = append(name, query.TextNumber...)
		case "boolean":
			name = append(name, query.TextBoolean...)
		default:
			return fault.Newf(fault.InvalidDesignDoc, "The field %q of a text index must be of the type string, number or boolean.", path)
		}
		m.fields[string(name)] = struct{}{}
		return nil
	})
}

// Close implements search.Indexer.
func (*mango) Close() {}

// Index implements search.Indexer.
func (m *mango) Index(ctx context.Context, dst []search.Field, d *shard.Doc) ([]search.Field, error) {
	return (&mangoBatch{mango: m}).Index(ctx, dst, d)
}

// Begin implements search.Batched.
func (m *mango) Begin() search.Batch { return &mangoBatch{mango: m} }

// mangoBatch has memory for some documents.
type mangoBatch struct {
	*mango
	walk mangoWalk
}

// End implements search.Batch.
func (*mangoBatch) End() {}

// Index implements search.Batch.
func (b *mangoBatch) Index(ctx context.Context, dst []search.Field, d *shard.Doc) ([]search.Field, error) {
	if strings.HasPrefix(d.ID, doc.DesignPrefix) {
		return dst, nil
	}
	w := &b.walk
	w.text = shard.AppendDoc(w.text[:0], d)
	ok, err := true, error(nil)
	if b.filter != nil {
		ok, err = b.filter.Match(query.NewWork(ctx, nil), w.text) // each document counts for itself
	}
	if err == nil && ok {
		w.text = query.Once(w.text) // a value that does not count would make an $ne fail
		err = w.document(b.mango, dst)
	}
	out := w.out
	w.out = nil
	switch {
	case ctx.Err() != nil:
		return dst, ctx.Err()
	case err != nil:
		return dst, index.DefinitionError(d.ID, err)
	case !ok:
		return dst, nil
	}
	if b.partitioned {
		out = append(out, partitionField(d.ID, false))
	}
	return out, nil
}
