package view

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"divan/shard/index"
	"divan/storage/doc"
	"divan/storage/fault"
)

// The languages of design documents that have views.
const (
	JavaScript = "javascript"
	Query      = "query" // Mango indexes
)

// Definition is the part of a design document that counts for its views
// (semantics.md section 12.1); an index is made from it. It is immutable.
type Definition struct {
	Signature string // names the index: the MD5 of Text, hexadecimal
	Text      []byte // canonical form, a design document itself; travels between nodes
	// Design is a design document that has these views, for _active_tasks; it is
	// no part of the signature, and empty until who made the definition sets it.
	Design string

	Language      string
	Partitioned   bool             // rows are kept by partition, and asked for one partition
	IncludeDesign bool             // design documents are mapped as well
	LocalSeq      bool             // documents are mapped with _local_seq
	Lib           []byte           // views.lib, JSON; nil: none
	Views         []ViewDefinition // ordered by name
}

// ViewDefinition is one view of a Definition.
type ViewDefinition struct {
	Name   string
	Map    string // JavaScript source, or the JSON object of a Mango index
	Reduce string // source or name of a built-in function; empty: none
	Raw    bool   // keys are ordered as Erlang terms
}

// Parse returns what counts for views in the body of a design document; nil
// when it has none. partitioned says that the database is: its views are then,
// too, unless the design document says otherwise. A body that CouchDB would
// have refused gives fault.InvalidDesignDoc.
func Parse(ddoc []byte, partitioned bool) (*Definition, error) {
	d := &Definition{Language: JavaScript, Partitioned: partitioned}
	var views, options []byte
	err := doc.EachMember(ddoc, func(name string, value []byte) (err error) {
		switch name {
		case "language":
			if language, ok := doc.Unquote(value); ok {
				d.Language = language
			}
		case "views":
			views = value
		case "options":
			options = value
		}
		return nil
	})
	if err == nil && doc.IsObject(options) {
		err = doc.EachMember(options, d.setOption)
	}
	if err == nil && doc.IsObject(views) {
		err = doc.EachMember(views, d.addView)
	}
	if err != nil {
		return nil, fmt.Errorf("read design document: %w", err)
	}
	if len(d.Views) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(d.Views, func(a, b ViewDefinition) int { return strings.Compare(a.Name, b.Name) })
	d.Partitioned = d.Partitioned && partitioned
	d.Text = d.appendText(nil)
	sum := md5.Sum(d.Text)
	d.Signature = hex.EncodeToString(sum[:])
	return d, nil
}

// ParseText returns the definition whose Text it is given.
func ParseText(text []byte) (*Definition, error) {
	d, err := Parse(text, true) // the text says itself when it is not
	if err == nil && d == nil {
		err = fault.New(fault.InvalidDesignDoc, "a definition without views")
	}
	return d, err
}

func (d *Definition) setOption(name string, value []byte) error {
	on := bytes.Equal(value, []byte("true"))
	switch name {
	case "partitioned":
		d.Partitioned = on
	case "include_design":
		d.IncludeDesign = on
	case "local_seq":
		d.LocalSeq = on
	}
	return nil
}

func (d *Definition) addView(name string, value []byte) error {
	if name == "lib" {
		d.Lib = slices.Clone(value)
		return nil
	}
	if !doc.IsObject(value) {
		return fault.Newf(fault.InvalidDesignDoc, "`views.%s` field must have object type", name)
	}
	v := ViewDefinition{Name: name}
	source := doc.Lookup(value, "map")
	if d.Language == Query && doc.IsObject(source) {
		v.Map = string(source)
	} else if text, ok := doc.Unquote(source); ok {
		v.Map = text
	} else {
		return fault.Newf(fault.InvalidDesignDoc, "View `%s` must contain map function", name)
	}
	v.Reduce, _ = doc.Unquote(doc.Lookup(value, "reduce"))
	collation, _ := doc.Unquote(doc.Lookup(doc.Lookup(value, "options"), "collation"))
	v.Raw = collation == "raw"
	if i := slices.IndexFunc(d.Views, func(o ViewDefinition) bool { return o.Name == name }); i >= 0 {
		d.Views[i] = v // of members of one name the last counts
		return nil
	}
	d.Views = append(d.Views, v)
	return nil
}

// appendText appends the canonical form: members in a fixed order, views
// ordered by name, options only where they are not the default.
func (d *Definition) appendText(dst []byte) []byte {
	dst = append(dst, `{"language":`...)
	dst = doc.AppendString(dst, d.Language)
	dst = append(dst, `,"options":{"partitioned":`...)
	dst = fmt.Appendf(dst, "%t", d.Partitioned)
	if d.IncludeDesign {
		dst = append(dst, `,"include_design":true`...)
	}
	if d.LocalSeq {
		dst = append(dst, `,"local_seq":true`...)
	}
	dst = append(dst, `},"views":{`...)
	if d.Lib != nil {
		dst = append(append(append(dst, `"lib":`...), d.Lib...), ',')
	}
	for i, v := range d.Views {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(doc.AppendString(dst, v.Name), `:{"map":`...)
		if d.Language == Query && doc.IsObject([]byte(v.Map)) {
			dst = append(dst, v.Map...)
		} else {
			dst = doc.AppendString(dst, v.Map)
		}
		if v.Reduce != "" {
			dst = doc.AppendString(append(dst, `,"reduce":`...), v.Reduce)
		}
		if v.Raw {
			dst = append(dst, `,"options":{"collation":"raw"}`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "}}"...)
}

func (d *Definition) name() index.Name { return index.Name{Type: index.View, Signature: d.Signature} }

// Wanted returns the index that the definition describes.
func (d *Definition) Wanted() index.Definition {
	return index.Definition{Name: d.name(), Design: d.Design, Text: d.Text}
}

// View returns a view by its name.
func (d *Definition) View(name string) (v ViewDefinition, ok bool) {
	i, ok := slices.BinarySearchFunc(d.Views, name, func(v ViewDefinition, name string) int { return strings.Compare(v.Name, name) })
	if ok {
		v = d.Views[i]
	}
	return v, ok
}
