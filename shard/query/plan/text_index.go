package plan

import (
	"slices"

	"divan/shard/query"
	"divan/shard/query/text"
	"divan/storage/doc"
)

// textIndex holds the properties that only an index of full text has.
type textIndex struct {
	shown    []byte // its definition as clients see it, JSON
	of       text.Index
	fallback bool // it has the field $default
}

// readText reads an entry of "indexes" or "nouveau"; false: it is no index of Mango.
func (x *Index) readText(entry []byte) bool {
	if !doc.IsObject(entry) {
		return false
	}
	definition := doc.Lookup(entry, "index")
	if !doc.IsObject(definition) {
		return false
	}
	t := &textIndex{fallback: hasDefault(definition), of: text.Index{Exact: exact(entry, definition)}}
	x.text = t
	if x.partial = filterOf(definition, "partial_filter_selector"); x.partial == nil {
		x.partial = filterOf(definition, "selector")
	}
	t.shown = append(t.shown, '{')
	_ = doc.EachMember(definition, func(name string, value []byte) error { // canonical
		if name == "partial_filter_selector" && len(value) == len("{}") {
			return nil
		}
		if len(t.shown) > 1 {
			t.shown = append(t.shown, ',')
		}
		t.shown = append(doc.AppendString(t.shown, name), ':')
		if name == "fields" {
			t.readFields(value)
		} else {
			t.shown = append(t.shown, value...)
		}
		return nil
	})
	t.shown = slices.Clip(append(t.shown, '}'))
	return true
}

// hasDefault reports whether a definition wants the field $default.
func hasDefault(definition []byte) bool {
	of := doc.Lookup(definition, "default_field")
	return string(of) != "false" && (!doc.IsObject(of) || string(doc.Lookup(of, "enabled")) != "false")
}

// exact reports whether all fields but $default hold strings as they are.
func exact(entry, definition []byte) bool {
	const keyword = `"keyword"`
	a := doc.Lookup(entry, "analyzer")
	switch {
	case a == nil:
		of := doc.Lookup(definition, "default_analyzer")
		return of == nil || string(of) == keyword
	case !doc.IsObject(a):
		return string(a) == keyword
	case string(doc.Lookup(a, "name")) != `"perfield"`:
		return string(doc.Lookup(a, "name")) == keyword
	}
	all := string(doc.Lookup(a, "default")) == keyword
	if fields := doc.Lookup(a, "fields"); doc.IsObject(fields) {
		_ = doc.EachMember(fields, func(name string, of []byte) error { // canonical
			all = all && (name == "$default" || string(of) == keyword)
			return nil
		})
	}
	return all
}

// readFields reads the list of the fields, and appends it as clients see it.
func (t *textIndex) readFields(list []byte) {
	t.shown = append(t.shown, '[')
	if doc.IsArray(list) && len(list) > len("[]") {
		t.of.Fields = map[string]struct{}{}
		_ = doc.EachElement(list, t.readField) // canonical
	}
	t.shown = append(t.shown, ']')
}

func (t *textIndex) readField(field []byte) error {
	if !doc.IsObject(field) {
		return nil
	}
	path, _ := doc.Unquote(doc.Lookup(field, "name"))
	kind, _ := doc.Unquote(doc.Lookup(field, "type"))
	if t.shown[len(t.shown)-1] != '[' {
		t.shown = append(t.shown, ',')
	}
	t.shown = append(doc.AppendString(append(t.shown, '{'), path), ':')
	t.shown = append(doc.AppendString(t.shown, kind), '}')
	if kind == "text" {
		kind = "string"
	}
	if name, err := query.AppendTextPath(nil, path); err == nil {
		t.of.Fields[string(name)+typeEnding(kind)] = struct{}{}
	}
	return nil
}

// typeEnding returns the ending of the names of fields of a type.
func typeEnding(kind string) string { return "_3a" + kind }
