package plan

import (
	"bytes"

	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// defineText makes the definition of an index of full text.
func (c *Create) defineText() error {
	if !doc.IsObject(c.given) {
		return refusal("invalid_index", "Text indexes must be an object, not: "+term(c.given))
	}
	o, err := parseOptions(c.given)
	if err != nil {
		return err
	}
	analyzer, standard := o.take("default_analyzer"), o.take("default_field") // values are not looked at
	partial, older := o.textFilter("partial_filter_selector"), o.textFilter("selector")
	fields := o.textFields(c.kind)
	lengths := o.boolean("index_array_lengths", true)
	if standard != nil && !doc.IsObject(standard) && string(standard) != "true" && string(standard) != "false" {
		o.refuse("invalid_index", "default_field must be a boolean or an object, not: "+term(standard))
	}
	if err := o.end(); err != nil {
		return err
	}
	c.allFields = fields == nil
	if c.allFields {
		fields = []byte(`"all_fields"`)
	}
	definition := append([]byte(`{"default_analyzer":`), orElse(analyzer, `"keyword"`)...)
	definition = append(append(definition, `,"default_field":`...), orElse(standard, "{}")...)
	definition = append(append(definition, `,"partial_filter_selector":`...), partial...)
	definition = append(append(definition, `,"selector":`...), older...)
	definition = append(append(definition, `,"fields":`...), fields...)
	definition = appendBool(append(definition, `,"index_array_lengths":`...), lengths)
	c.definition = append(append([]byte(`{"index":`), append(definition, '}')...), `,"analyzer":`...)
	c.definition = append(appendAnalyzer(c.definition, analyzer, standard), '}')
	return nil
}

func orElse(given []byte, otherwise string) []byte {
	if given == nil {
		return []byte(otherwise)
	}
	return given
}

// appendAnalyzer appends what the fields of an index are analyzed by.
func appendAnalyzer(dst, analyzer, standard []byte) []byte {
	of := []byte(`"standard"`)
	if doc.IsObject(standard) {
		of = orElse(doc.Lookup(standard, "analyzer"), `"standard"`)
		if string(doc.Lookup(standard, "enabled")) == "false" {
			of = nil
		}
	} else if string(standard) == "false" {
		of = nil
	}
	if of == nil {
		return append(dst, `"keyword"`...)
	}
	dst = append(append(dst, `{"name":"perfield","default":`...), orElse(analyzer, `"keyword"`)...)
	return append(append(append(dst, `,"fields":{"$default":`...), of...), "}}"...)
}

// filter takes a selector, and returns its normal form.
func (o *options) textFilter(name string) []byte {
	s := o.filter(o.take(name))
	if s == nil {
		return []byte("{}")
	}
	return s.Append(nil)
}

// textFields takes the list of the fields; nil: all.
func (o *options) textFields(kind Kind) []byte {
	list := o.take("fields")
	switch {
	case list == nil, string(list) == `"all_fields"`, string(list) == "[]":
		return nil
	case textFields(list, kind):
		return list
	}
	types := `"boolean,number, or string"`
	if kind == Nouveau {
		types = `"boolean,number,string or text"`
	}
	line := "                " + types + "}. Def: "
	o.refuse("invalid_index_fields_definition", "Text Index field definitions must be of the form\n"+
		"            {\"name\": \"non-empty fieldname\", \"type\":\n"+line+query.TermLines(list, len(line)))
	return nil
}

// textFields reports whether a value is a list of names with their types.
func textFields(list []byte, kind Kind) bool {
	if !doc.IsArray(list) {
		return false
	}
	good := true
	_ = doc.EachElement(list, func(field []byte) error { // canonical
		good = good && doc.IsObject(field) && textField(field, kind)
		return nil
	})
	return good
}

func textField(field []byte, kind Kind) bool {
	members := 0
	_ = doc.EachMember(field, func(string, []byte) error { // canonical
		members++
		return nil
	})
	name, ok := doc.Unquote(doc.Lookup(field, "name"))
	if !ok || members != 2 {
		return false
	}
	if _, err := query.AppendTextPath(nil, name); err != nil {
		return false
	}
	switch t, _ := doc.Unquote(doc.Lookup(field, "type")); t {
	case "string", "number", "boolean":
		return true
	case "text":
		return kind == Nouveau
	default:
		return false
	}
}

// Restrict refuses an index of all fields where the administrator has switched those off.
func (c *Create) Restrict(disabled bool) error {
	if disabled && c.allFields {
		return &fault.Error{Kind: fault.Forbidden, Code: "index_all_disabled", Reason: "New text indexes are forbidden to index all fields."}
	}
	return nil
}

// addText returns the entry of the index in a design document; nil when the document has it.
func (c *Create) addText(body []byte) []byte {
	all := doc.Lookup(body, c.kind.member())
	if !doc.IsObject(all) {
		all = []byte("{}")
	}
	if bytes.Equal(doc.Lookup(all, c.Name), c.definition) {
		return nil
	}
	return withMember(body, c.kind.member(), withMember(all, c.Name, c.definition))
}
