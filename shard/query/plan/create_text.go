package plan

import (
	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// refuseText refuses an index of full text: for what is wrong with its definition, as
// CouchDB does with a search service, or because there is none.
func refuseText(kind string, given []byte) error {
	if !doc.IsObject(given) {
		return refusal("invalid_index", "Text indexes must be an object, not: "+term(given))
	}
	o, err := parseOptions(given)
	if err != nil {
		return err
	}
	for _, name := range []string{"default_analyzer", "default_field"} {
		o.take(name) // anything goes
	}
	for _, name := range []string{"partial_filter_selector", "selector"} {
		if v := o.take(name); v != nil {
			o.selector(v)
		}
	}
	if v := o.take("fields"); v != nil && string(v) != `"all_fields"` && !textFields(v, kind) {
		o.refuse("invalid_index_fields_definition", "Text Index field definitions must be of the form\n"+
			"            {\"name\": \"non-empty fieldname\", \"type\":\n                \"boolean,number, or string\"}. Def: "+query.Term(v, true))
	}
	o.boolean("index_array_lengths", true)
	if err := o.end(); err != nil {
		return err
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "required index service unavailable", Reason: kind}
}

// textFields reports whether a value is a list of names with their types.
func textFields(list []byte, kind string) bool {
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

func textField(field []byte, kind string) bool {
	members := 0
	_ = doc.EachMember(field, func(string, []byte) error { // canonical
		members++
		return nil
	})
	name, ok := doc.Unquote(doc.Lookup(field, "name"))
	if !ok || name == "" || members != 2 {
		return false
	}
	switch t, _ := doc.Unquote(doc.Lookup(field, "type")); t {
	case "string", "number", "boolean":
		return true
	case "text":
		return kind == "nouveau"
	default:
		return false
	}
}
