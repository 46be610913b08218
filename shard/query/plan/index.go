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
	Columns     []Column
	Partitioned bool

	partial []byte // partial_filter_selector; nil: none
}

// allDocs is what every database has.
func allDocs() *Index { return &Index{Name: "_all_docs", Columns: []Column{{Name: "_id"}}} }

// AllDocs reports whether the index is the list of documents itself.
func (x *Index) AllDocs() bool { return x.Design == "" }

// IndexesOf returns the indexes that the body of a design document defines.
// Views in JavaScript are none. partitioned says that the database is.
func IndexesOf(id string, body []byte, partitioned bool) []*Index {
	if language, _ := doc.Unquote(doc.Lookup(body, "language")); language != "query" {
		return nil
	}
	views := doc.Lookup(body, "views")
	if !doc.IsObject(views) {
		return nil
	}
	if string(doc.Lookup(doc.Lookup(body, "options"), "partitioned")) == "false" {
		partitioned = false
	}
	var out []*Index
	_ = doc.EachMember(views, func(name string, view []byte) error { // well-formed
		definition := doc.Lookup(view, "map")
		fields := doc.Lookup(definition, "fields")
		if !doc.IsObject(fields) {
			return nil
		}
		x := &Index{Design: id, Name: name, Partitioned: partitioned}
		_ = doc.EachMember(fields, func(name string, direction []byte) error {
			x.Columns = append(x.Columns, Column{Name: name, Desc: string(direction) == `"desc"`})
			return nil
		})
		if p := doc.Lookup(definition, "partial_filter_selector"); doc.IsObject(p) && len(p) > len("{}") {
			x.partial = slices.Clone(p)
		}
		out = append(out, x)
		return nil
	})
	return out
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
		dst = append(dst, `,"type":"json","partitioned":`...)
		dst = appendBool(dst, x.Partitioned)
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
