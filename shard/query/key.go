package query

import (
	"divan/storage/doc"
	"divan/storage/fault"
)

// Key makes the keys of a Mango index: the values of its fields, in their order.
// It never changes and is safe for concurrent use.
type Key struct {
	slots  slots
	paths  []keyPath
	filter *Selector // nil: every document
}

type keyPath struct {
	slot int
	path []step
}

// ParseKey reads the map of a view in a design document of the language "query":
// {"fields": {"name": "asc", …}, "partial_filter_selector": …}.
func ParseKey(definition []byte) (*Key, error) {
	fields, err := KeyFields(definition)
	if err != nil {
		return nil, err
	}
	k := &Key{}
	for _, field := range fields {
		names, err := splitField(field)
		if err != nil {
			return nil, err
		}
		p := keyPath{slot: k.slots.add(names[0])}
		for _, name := range names[1:] {
			p.path = append(p.path, newStep(name))
		}
		k.paths = append(k.paths, p)
	}
	if filter := doc.Lookup(definition, "partial_filter_selector"); doc.IsObject(filter) && len(filter) > len("{}") {
		k.filter, err = Parse(filter)
	}
	return k, err
}

// KeyFields returns the names of the fields of an index.
func KeyFields(definition []byte) ([]string, error) {
	fields := doc.Lookup(definition, "fields")
	if !doc.IsObject(fields) {
		return nil, fault.New(fault.InvalidDesignDoc, "Index fields must be an object.")
	}
	var out []string
	err := doc.EachMember(fields, func(name string, _ []byte) error {
		out = append(out, name)
		return nil
	})
	return out, err
}

// Append appends the key of a document, which is given with its _id and _rev in
// canonical form: a JSON array. ok is false when the document is not in the
// index: because it lacks a field, or the filter does not match it. The filter fails
// as [Selector.Match] does, but each document counts for itself, as an index
// has to have them all.
func (k *Key) Append(w *Work, dst, document []byte) (key []byte, ok bool, err error) {
	if k.filter != nil {
		w.heavy = 0
		if ok, err = k.filter.Match(w, document); !ok || err != nil {
			return dst, false, err
		}
	}
	var inline [inlineSlots][]byte
	values := k.slots.fill(inline[:0], document)
	dst = append(dst, '[')
	for i := range k.paths {
		p := &k.paths[i]
		v := values[p.slot]
		if v == nil {
			return dst, false, nil
		}
		if len(p.path) > 0 {
			var state found
			if v, state = follow(v, p.path); state != present {
				return dst, false, nil
			}
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, Once(v)...)
	}
	return append(dst, ']'), true, nil
}
