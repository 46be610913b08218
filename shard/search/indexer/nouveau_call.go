package indexer

import (
	"divan/shard/script"
	"divan/shard/search/postings"
	"divan/storage/fault"
)

// nouveauField decides what index(type, name, value, options) of _nouveau makes. An error is
// a *script.Refusal.
func nouveauField(c *script.Call) (d decided, err error) {
	kind, name, value := &c.Arguments[0], &c.Arguments[1], &c.Arguments[2]
	if kind.Kind != script.Text {
		return d, typeError("The type of a field must be a string.")
	}
	if err := checkName(name); err != nil {
		return d, err
	}
	d.name = name.Text
	d.store = stores(&c.Store)
	switch string(kind.Text) {
	case "text":
		d.of.Type, d.of.Indexed = postings.TextType, true
	case "string":
		d.of.Type, d.of.Indexed, d.of.Exact, d.of.Facet = postings.StringType, true, true, true
	case "double":
		d.of.Type = postings.DoubleType
	case "stored":
		d.of.Type, d.store = postings.StoredType, true
	default:
		return d, typeError("The type of a field must be text, string, double or stored.")
	}
	if !d.takes(value) {
		return d, typeError("The value of a field must be one of its type.")
	}
	if err := checkOptions(&c.Options); err != nil {
		return d, err
	}
	if !usableName(name.Text) {
		d.unusable = fault.Newf(fault.BadRequest, "%q is no name of a field: it must be letters, digits and underscores behind a letter, perhaps after a dollar sign", name.Text)
	}
	return d, nil
}

// takes gives the field a value, if it is one of its type.
func (d *decided) takes(value *script.Argument) bool {
	switch {
	case value.Kind == script.Text && d.of.Type != postings.DoubleType:
		d.text = value.Text
		return true
	case value.Kind == script.Number && d.of.Type == postings.DoubleType:
		d.number(value.Number)
		d.of.Facet = d.of.Indexed
		return true
	case value.Kind == script.Number && d.of.Type == postings.StoredType:
		d.number(value.Number)
		d.of.Indexed = false
		return true
	}
	return false
}

// usableName reports whether _nouveau has fields of that name.
func usableName(name []byte) bool {
	if len(name) > 0 && name[0] == '$' {
		name = name[1:]
	}
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return len(name) > 0
}
