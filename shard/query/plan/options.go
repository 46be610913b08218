package plan

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"divan/shard/query"
	"divan/storage/doc"
	"divan/storage/fault"
)

// options are the members of a request. The first refusal sticks.
type options struct {
	names  []string // in order, without repetitions
	values map[string][]byte
	err    error
}

// parseOptions reads the body of a request. Of members of one name the last one
// counts.
func parseOptions(object []byte) (*options, error) {
	canonical, err := doc.Canonical(nil, object)
	if err != nil {
		return nil, err
	}
	o := &options{values: map[string][]byte{}}
	return o, doc.EachMember(canonical, func(name string, value []byte) error {
		if _, ok := o.values[name]; !ok {
			o.names = append(o.names, name)
		}
		o.values[name] = value
		return nil
	})
}

// take returns a member and forgets it; nil when it is not there.
func (o *options) take(name string) []byte {
	v, ok := o.values[name]
	if ok {
		delete(o.values, name)
		o.names = slices.DeleteFunc(o.names, func(n string) bool { return n == name })
	}
	return v
}

// required is take for a member that must be there.
func (o *options) required(name string) []byte {
	v := o.take(name)
	if v == nil {
		o.refuse("missing_required_key", "Missing required key: "+name)
	}
	return v
}

// end refuses members that were not taken, and returns the first refusal.
func (o *options) end() error {
	if len(o.names) > 0 {
		o.refuse("invalid_key", "Invalid key "+o.names[0]+" for this request.")
	}
	return o.err
}

func (o *options) refuse(code, reason string) { o.fail(refusal(code, reason)) }

func (o *options) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// refusal returns an error that a client gets with status 400.
func refusal(code, reason string) error {
	return &fault.Error{Kind: fault.InvalidSelector, Code: code, Reason: reason}
}

func term(v []byte) string { return query.Term(v, false) }

func (o *options) boolean(name string, otherwise bool) bool {
	switch v := o.take(name); string(v) {
	case "":
		return otherwise
	case "true":
		return true
	case "false":
		return false
	default:
		o.refuse("invalid_boolean", "Invalid boolean value: "+term(v))
		return false
	}
}

// integer reads an integer of at least least, which is 0 or 1; one that is too
// large for an int is the largest.
func (o *options) integer(name string, least, otherwise int) int {
	v := o.take(name)
	if v == nil {
		return otherwise
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err == nil && n >= int64(least) {
		return int(min(n, math.MaxInt32))
	}
	if err != nil && n == math.MaxInt64 { // too many digits
		return math.MaxInt32
	}
	if least > 0 {
		o.refuse("invalid_pos_integer", term(v)+" is not an integer greater than zero")
	} else {
		o.refuse("invalid_non_neg_integer", term(v)+" is not an integer greater than or equal to zero")
	}
	return 0
}

// text reads a string; ok is false when it is not there.
func (o *options) text(name string) (s string, ok bool) {
	v := o.take(name)
	if v == nil {
		return "", false
	}
	if s, ok = doc.Unquote(v); !ok {
		o.refuse("invalid_string", "Invalid string: "+term(v))
	}
	return s, ok
}

// partition reads the name of a partition; empty: none.
func (o *options) partition() string {
	v := o.take("partition")
	if v == nil {
		return ""
	}
	s, ok := doc.Unquote(v)
	if !ok {
		o.refuse("illegal_partition", "Partition must be a string")
	}
	return s
}

// title reads the name of an index or of a design document.
func (o *options) title(name string) string {
	s, ok := o.text(name)
	if ok && s == "" {
		o.refuse("invalid_empty_string", "Index name or ddoc cannot be empty string")
	}
	return s
}

// selector parses a selector; v may be nil.
func (o *options) selector(v []byte) *query.Selector {
	if v == nil {
		return nil
	}
	s, err := query.Parse(v)
	if err != nil {
		o.fail(err)
	}
	return s
}

// filter parses the selector of the documents that an index has; v may be nil.
func (o *options) filter(v []byte) *query.Selector {
	s := o.selector(v)
	if s != nil && s.Text() {
		o.fail(query.NoTextIndex())
	}
	return s
}

// maxSort bounds the fields of a sort, each of which takes many times its text.
const maxSort = 10_000

// sort reads a list of fields with their directions.
func (o *options) sort(v []byte) []Column {
	if v == nil {
		return nil
	}
	if !doc.IsArray(v) {
		o.refuse("invalid_sort_json", "Sort must be an array of sort specs, not: "+query.Term(v, true))
		return nil
	}
	if bytes.Count(v, []byte{','}) >= maxSort {
		o.refuse("invalid_sort_json", fmt.Sprintf("Sort must have at most %d fields", maxSort))
		return nil
	}
	var out []Column
	mixed := false
	_ = doc.EachElement(v, func(item []byte) error { // canonical
		c, ok := column(item)
		if !ok {
			o.refuse("invalid_sort_field", "Invalid sort field: "+query.Term(item, true))
		}
		out = append(out, c)
		mixed = mixed || c.Desc != out[0].Desc
		return nil
	})
	if mixed {
		o.refuse("unsupported_mixed_sort", "Sorts currently only support a single direction for all fields.")
	}
	return out
}

// column reads "field" or {"field": "asc"}.
func column(item []byte) (c Column, ok bool) {
	if name, ok := doc.Unquote(item); ok {
		return Column{Name: name}, name != ""
	}
	if !doc.IsObject(item) {
		return c, false
	}
	members := 0
	err := doc.EachMember(item, func(name string, direction []byte) error {
		members++
		c.Name, c.Desc = name, string(direction) == `"desc"`
		ok = c.Desc || string(direction) == `"asc"`
		return nil
	})
	return c, ok && err == nil && members == 1
}

// useIndex reads which index the client wants.
func (o *options) useIndex(v []byte) []string {
	list, ok := indexName(v)
	if !ok {
		o.refuse("invalid_index_name", "Invalid index name: "+term(v))
	}
	return list
}

// indexName reads a design document with perhaps the name of an index in it.
func indexName(v []byte) (list []string, ok bool) {
	if v == nil || string(v) == "null" {
		return nil, true
	}
	if name, ok := doc.Unquote(v); ok {
		list = splitIndexName(name)
		return list, len(list) <= 2
	}
	if !doc.IsArray(v) {
		return nil, false
	}
	ok = true
	_ = doc.EachElement(v, func(item []byte) error { // canonical
		name, is := doc.Unquote(item)
		ok = ok && is
		list = append(list, name)
		return nil
	})
	return list, ok && len(list) <= 2
}
