package query

import (
	"fmt"

	"divan/storage/doc"
)

// maxFields bounds a list of fields, which are compared with each other.
const maxFields = 10_000

// Fields is a list of fields that selects parts of a document ("fields" of
// _find and of the _selector filter). It never changes and is safe for
// concurrent use.
type Fields struct {
	slots slots
	parts []*part // of each slot
}

// part is a member that is wanted, wholly or in part.
type part struct {
	step  step
	whole bool
	parts []*part
}

// ParseFields reads a JSON array of paths; an empty one selects everything,
// which is the result nil. What is refused gives *fault.Error of kind
// InvalidSelector with CouchDB's error name in Code; text that is no JSON gives
// fault.BadRequest.
func ParseFields(text []byte) (*Fields, error) {
	canonical, err := doc.Canonical(nil, text)
	if err != nil {
		return nil, err
	}
	if !doc.IsArray(canonical) {
		return nil, invalid("invalid_fields", "Fields must be an array of strings, not: "+term(canonical))
	}
	f := &Fields{}
	n := 0
	for e := (elements{text: canonical}); e.next(); n++ {
		if kindOf(e.value) != kindString {
			return nil, invalid("invalid_field", "Invalid JSON for field spec: "+term(e.value))
		}
		if n == maxFields {
			return nil, invalid("invalid_fields", fmt.Sprintf("Fields must be at most %d", maxFields))
		}
		field, _ := doc.Unquote(e.value) // canonical
		names, err := splitField(field)
		if err != nil {
			return nil, err
		}
		f.add(names)
	}
	if n == 0 {
		return nil, nil
	}
	return f, nil
}

func (f *Fields) add(names []string) {
	slot := f.slots.add(names[0])
	if slot == len(f.parts) {
		f.parts = append(f.parts, &part{step: newStep(names[0])})
	}
	p := f.parts[slot]
	for _, name := range names[1:] {
		p = p.part(name)
	}
	p.whole = true
}

// part returns the part of that name, which it makes when there is none.
func (p *part) part(name string) *part {
	s := newStep(name)
	for _, q := range p.parts {
		if string(q.step.name) == string(s.name) {
			return q
		}
	}
	q := &part{step: s}
	p.parts = append(p.parts, q)
	return q
}

// Append appends the selected part of a document, a JSON object in canonical
// text. Members come in the order of the fields; what the document lacks is
// left out. An element of an array becomes a member named by its index. Nil
// selects everything.
func (f *Fields) Append(dst, document []byte) []byte {
	if f == nil {
		return append(dst, document...)
	}
	var inline [inlineSlots][]byte
	values := f.slots.fill(inline[:0], document)
	dst = append(dst, '{')
	empty := len(dst)
	for i, p := range f.parts {
		if values[i] != nil {
			dst = p.append(dst, values[i], empty)
		}
	}
	return append(dst, '}')
}

// append appends the member p of an object whose first member starts at from,
// or nothing when v has none of what is wanted.
func (p *part) append(dst, v []byte, from int) []byte {
	start := len(dst)
	if start > from {
		dst = append(dst, ',')
	}
	dst = append(append(dst, p.step.name...), ':')
	if p.whole {
		return append(dst, v...)
	}
	dst = append(dst, '{')
	empty := len(dst)
	for _, q := range p.parts {
		if inner, state := q.step.of(v); state == present {
			dst = q.append(dst, inner, empty)
		}
	}
	if len(dst) == empty {
		return dst[:start]
	}
	return append(dst, '}')
}
