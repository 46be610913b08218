package plan

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"

	"divan/shard/query"
	"divan/storage/doc"
)

// Create is the request of POST _index.
type Create struct {
	Design string // id of the design document
	Name   string
	W      int // copies that must have it; 0: not given

	kind        Kind
	allFields   bool   // of full text: it has all fields
	partitioned []byte // "true" or "false"; nil: not given
	definition  []byte // the map of the view; of full text the whole entry
	given       []byte // "index" as the client sent it
}

// ParseCreate reads the body of a request.
func ParseCreate(body []byte) (*Create, error) {
	o, err := parseOptions(body)
	if err != nil {
		return nil, err
	}
	c := &Create{given: o.required("index")}
	kind, _ := o.text("type")
	c.Name = o.title("name")
	c.Design = o.title("ddoc")
	c.W = o.integer("w", 1, 0)
	if v := o.take("partitioned"); v != nil {
		if c.partitioned = v; string(v) != "true" && string(v) != "false" {
			o.refuse("invalid_boolean", "Invalid boolean value: "+term(v))
		}
	}
	if err := o.end(); err != nil {
		return nil, err
	}
	define := c.defineText
	switch kind {
	case "", "json":
		define = c.define
	case "text":
		c.kind = Text
	case "nouveau":
		c.kind = Nouveau
	default:
		return nil, refusal("invalid_index", "Invalid type for index: "+kind)
	}
	if err := define(); err != nil {
		return nil, err
	}
	definition := append(append([]byte(kind), 0), c.given...)
	if c.Design == "" {
		c.Design = hashName(definition)
		if c.Name != "" || c.partitioned != nil { // indexes of other names have design documents of their own
			c.Design = hashName(definition, []byte(c.Name), c.partitioned)
		}
	}
	if c.Name == "" {
		c.Name = hashName(definition)
	}
	c.Design = DesignID(c.Design)
	return c, doc.ValidateID(c.Design)
}

// hashName makes a name of what something is.
func hashName(parts ...[]byte) string {
	sum := sha1.Sum(bytes.Join(parts, []byte{0}))
	return hex.EncodeToString(sum[:])
}

// define makes the map of the view.
func (c *Create) define() error {
	if !doc.IsObject(c.given) {
		return refusal("invalid_index", "JSON indexes must be an object, not: "+term(c.given))
	}
	o, err := parseOptions(c.given)
	if err != nil {
		return err
	}
	columns := o.sort(o.required("fields"))
	partial := o.filter(o.take("partial_filter_selector"))
	if err := o.end(); err != nil {
		return err
	}
	c.definition = append(c.definition, `{"fields":{`...)
	for i, column := range columns {
		if i > 0 {
			c.definition = append(c.definition, ',')
		}
		c.definition = column.append(c.definition)
	}
	c.definition = append(c.definition, `},"partial_filter_selector":`...)
	if partial == nil {
		partial = &query.Selector{}
	}
	c.definition = append(partial.Append(c.definition), '}')
	_, err = query.ParseKey(c.definition)
	return err
}

// AddTo returns the body of the design document with the index in it; nil when it
// has it already. The body is nil when there is no such document.
func (c *Create) AddTo(body []byte) ([]byte, error) {
	if body == nil {
		body = []byte(`{"language":"query"}`)
		if c.partitioned != nil {
			body = []byte(`{"language":"query","options":{"partitioned":` + string(c.partitioned) + `}}`)
		}
	} else if err := c.fits(body); err != nil {
		return nil, err
	}
	if c.kind != JSON {
		return c.addText(body), nil
	}
	view := append([]byte(`{"map":`), c.definition...)
	view = append(append(view, `,"reduce":"_count","options":{"def":`...), c.given...)
	view = append(view, "}}"...)
	views := doc.Lookup(body, "views")
	if !doc.IsObject(views) {
		views = []byte("{}")
	}
	if bytes.Equal(doc.Lookup(views, c.Name), view) {
		return nil, nil
	}
	return withMember(body, "views", withMember(views, c.Name, view)), nil
}

// fits refuses a design document that the index cannot be in.
func (c *Create) fits(body []byte) error {
	language := doc.Lookup(body, "language")
	if string(language) != `"query"` {
		found := "false"
		if language != nil {
			found = "{" + term([]byte(`"language"`)) + "," + term(language) + "}"
		}
		return refusal("invalid_ddoc_lang", "Existing design doc has an invalid language: "+found)
	}
	if old := doc.Lookup(doc.Lookup(body, "options"), "partitioned"); c.partitioned != nil && !bytes.Equal(old, c.partitioned) {
		return refusal("invalid_partitioned_option",
			"Requested partitioned option does not match existing value on design document "+c.Design)
	}
	return nil
}

// Partitioned reports whether the request asks for an index by partitions.
func (c *Create) Partitioned() bool { return string(c.partitioned) == "true" }

// RemoveFrom returns the body of a design document without some of its indexes;
// nil when nothing is left that it would be for.
func RemoveFrom(body []byte, indexes []*Index) []byte {
	for _, x := range indexes {
		member := x.Kind.member()
		rest := withMember(doc.Lookup(body, member), x.Name, nil)
		if len(rest) == len("{}") {
			rest = nil
		}
		body = withMember(body, member, rest)
	}
	rest := withMember(withMember(body, "language", nil), "options", nil)
	if len(rest) == len("{}") {
		return nil
	}
	return body
}

// withMember returns an object, in canonical form, with one member set, or taken
// away when the value is nil.
func withMember(object []byte, name string, value []byte) []byte {
	out := []byte("{")
	add := func(name string, value []byte) {
		if value == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(doc.AppendString(out, name), ':'), value...)
	}
	done := false
	_ = doc.EachMember(object, func(n string, v []byte) error { // well-formed
		switch {
		case n != name:
			add(n, v)
		case !done:
			add(name, value)
			done = true
		}
		return nil
	})
	if !done {
		add(name, value)
	}
	return append(out, '}')
}

// BulkDelete is the request of POST _index/_bulk_delete.
type BulkDelete struct {
	Designs []string // ids of design documents
	W       int
}

// ParseBulkDelete reads the body of a request.
func ParseBulkDelete(body []byte) (*BulkDelete, error) {
	o, err := parseOptions(body)
	if err != nil {
		return nil, err
	}
	b := &BulkDelete{}
	switch v := o.required("docids"); {
	case v == nil:
	case !doc.IsArray(v):
		o.refuse("invalid_bulk_docs", "Bulk Delete requires an array of non-null docids. Docids: "+term(v))
	default:
		_ = doc.EachElement(v, func(item []byte) error { // canonical
			if name, ok := doc.Unquote(item); ok {
				b.Designs = append(b.Designs, DesignID(name))
			} else {
				o.refuse("invalid_index_name", "Invalid index name: "+term(item))
			}
			return nil
		})
	}
	b.W = o.integer("w", 1, 0)
	return b, o.end()
}
