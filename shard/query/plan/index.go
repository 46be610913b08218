package plan

import (
	"cmp"
	"slices"
	"strings"

	"divan/storage/doc"
)

// Index is an index as a query sees it.
type Index struct {
	Design      string // id of the design document; empty: _all_docs
	Name        string
	Kind        Kind
	Columns     []Column // of JSON
	Partitioned bool
	Broken      bool // of full text: its definition cannot be; it is used only where it is named

	partial []byte     // partial_filter_selector; nil: none
	text    *textIndex // nil: it is none of full text
}

// Kind is the type of an index.
type Kind uint8

// The types, in the order in which queries prefer them.
const (
	JSON Kind = iota
	Text
	Nouveau // built and asked as Text is
	Special // _all_docs
	kinds
)

// String returns the type as clients see it.
func (k Kind) String() string { return [kinds]string{"json", "text", "nouveau", "special"}[k] }

// member returns the member of a design document that has the indexes of a type.
func (k Kind) member() string { return [kinds]string{"views", "indexes", "nouveau", ""}[k] }

// allDocs returns the index that every database has.
func allDocs() *Index {
	return &Index{Name: "_all_docs", Kind: Special, Columns: []Column{{Name: "_id"}}}
}

// AllDocs reports whether the index is the list of documents itself.
func (x *Index) AllDocs() bool { return x.Kind == Special }

// IndexesOf returns the indexes that the body of a design document defines.
// Views in JavaScript are none. partitioned says that the database is.
func IndexesOf(id string, body []byte, partitioned bool) []*Index {
	if language, _ := doc.Unquote(doc.Lookup(body, "language")); language != "query" {
		return nil
	}
	if string(doc.Lookup(doc.Lookup(body, "options"), "partitioned")) == "false" {
		partitioned = false
	}
	var out []*Index
	for _, kind := range []Kind{JSON, Text, Nouveau} {
		all := doc.Lookup(body, kind.member())
		if !doc.IsObject(all) {
			continue
		}
		_ = doc.EachMember(all, func(name string, given []byte) error { // well-formed
			x := &Index{Design: id, Name: name, Kind: kind, Partitioned: partitioned}
			if kind == JSON && x.readColumns(given) || kind != JSON && x.readText(given) {
				out = append(out, x)
			}
			return nil
		})
	}
	return out
}

// readColumns reads the view of an index of JSON; false: it is none.
func (x *Index) readColumns(view []byte) bool {
	definition := doc.Lookup(view, "map")
	fields := doc.Lookup(definition, "fields")
	if !doc.IsObject(fields) {
		return false
	}
	_ = doc.EachMember(fields, func(name string, direction []byte) error {
		x.Columns = append(x.Columns, Column{Name: name, Desc: string(direction) == `"desc"`})
		return nil
	})
	x.partial = filterOf(definition, "partial_filter_selector")
	return true
}

// filterOf returns a copy of a selector of a definition; nil: there is none.
func filterOf(definition []byte, name string) []byte {
	if p := doc.Lookup(definition, name); doc.IsObject(p) && len(p) > len("{}") {
		return slices.Clone(p)
	}
	return nil
}

// List returns the indexes of a database as GET _index shows them: _all_docs
// first, then those of its design documents in the order of their ids.
func List(indexes []*Index) []*Index {
	out := slices.Clone(indexes)
	slices.SortStableFunc(out, func(a, b *Index) int { return cmp.Compare(a.Design, b.Design) })
	return append([]*Index{allDocs()}, out...)
}

// AppendJSON appends the index as a client sees it.
func (x *Index) AppendJSON(dst []byte) []byte {
	if x.AllDocs() {
		dst = append(dst, `{"ddoc":null,"name":"_all_docs","type":"special"`...)
	} else {
		dst = doc.AppendString(append(dst, `{"ddoc":`...), x.Design)
		dst = doc.AppendString(append(dst, `,"name":`...), x.Name)
		dst = append(append(append(dst, `,"type":"`...), x.Kind.String()...), `","partitioned":`...)
		dst = appendBool(dst, x.Partitioned)
	}
	if x.text != nil {
		return append(append(append(dst, `,"def":`...), x.text.shown...), '}')
	}
	dst = append(dst, `,"def":{"fields":[`...)
	for i, c := range x.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(c.append(append(dst, '{')), '}')
	}
	dst = append(dst, ']')
	if x.partial != nil {
		dst = append(append(dst, `,"partial_filter_selector":`...), x.partial...)
	}
	return append(dst, "}}"...)
}

// append appends the column as a member of an object.
func (c Column) append(dst []byte) []byte {
	dst = doc.AppendString(dst, c.Name)
	if c.Desc {
		return append(dst, `:"desc"`...)
	}
	return append(dst, `:"asc"`...)
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// Names returns the names of the columns.
func (x *Index) Names() []string {
	out := make([]string, len(x.Columns))
	for i, c := range x.Columns {
		out[i] = c.Name
	}
	return out
}

// named reports whether use_index names the index.
func (x *Index) named(use []string) bool {
	return len(use) > 0 && !x.AllDocs() && x.Design == DesignID(use[0]) && (len(use) == 1 || use[1] == x.Name)
}

// DesignID returns the id of a design document that may be named without its
// prefix.
func DesignID(name string) string {
	if strings.HasPrefix(name, doc.DesignPrefix) {
		return name
	}
	return doc.DesignPrefix + name
}

// splitIndexName splits "[_design/]ddoc[/index]".
func splitIndexName(name string) []string {
	parts := strings.Split(name, "/")
	if len(parts) > 1 && parts[0]+"/" == doc.DesignPrefix {
		parts = parts[1:]
	}
	return parts
}
