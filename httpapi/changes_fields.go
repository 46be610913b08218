package httpapi

import (
	"bytes"
	"strconv"
	"strings"

	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// selectorFilter reads the body of filter=_selector: a Mango selector, and
// perhaps the fields of documents that are wanted.
func (c *call) selectorFilter(body []byte) (shard.Filter, *projection, error) {
	if c.method != "POST" {
		return shard.Filter{}, nil, fault.New(fault.BadRequest, "Selector must be specified in POST payload")
	}
	selector := bodyMember(body, "selector")
	if !doc.IsObject(selector) {
		return shard.Filter{}, nil, fault.New(fault.BadRequest, "Selector error: expected a JSON object")
	}
	fields, err := parseProjection(bodyMember(body, "fields"))
	if err != nil {
		return shard.Filter{}, nil, err
	}
	return shard.Filter{Kind: shard.FilterSelector, Selector: bytes.Clone(selector)}, fields, nil
}

// selectorError gives the refusal of a selector the name it has in feeds
// (api.md section 20, row 18).
func selectorError(err error) error {
	if fault.Is(err, fault.InvalidSelector) {
		return fault.New(fault.BadRequest, fault.Reason(err))
	}
	return err
}

// projection is the part of a document that a list of fields selects. A field
// "a.b" is the member b of the member a; a dot behind a backslash belongs to
// the name.
type projection struct {
	name     string
	whole    bool // the value is wanted as it is
	children []*projection
}

// parseProjection reads a JSON array of fields; nil for all.
func parseProjection(text []byte) (*projection, error) {
	if text == nil {
		return nil, nil
	}
	bad := fault.New(fault.BadRequest, "Selector error: fields must be JSON array")
	if !doc.IsArray(text) {
		return nil, bad
	}
	root := &projection{}
	err := doc.EachElement(text, func(value []byte) error {
		field, ok := doc.Unquote(value)
		if !ok {
			return bad
		}
		root.add(splitField(field))
		return nil
	})
	if len(root.children) == 0 {
		return nil, err
	}
	return root, err
}

// splitField splits a field at its dots.
func splitField(field string) []string {
	var names []string
	var name strings.Builder
	for i := 0; i < len(field); i++ {
		switch {
		case field[i] == '\\' && i+1 < len(field):
			i++
			name.WriteByte(field[i])
		case field[i] == '.':
			names = append(names, name.String())
			name.Reset()
		default:
			name.WriteByte(field[i])
		}
	}
	return append(names, name.String())
}

func (p *projection) add(names []string) {
	for _, name := range names {
		p = p.child(name)
	}
	p.whole = true
}

// child returns the child of that name, which it makes when there is none.
func (p *projection) child(name string) *projection {
	for _, c := range p.children {
		if c.name == name {
			return c
		}
	}
	c := &projection{name: name}
	p.children = append(p.children, c)
	return c
}

// append appends the selected part of a JSON object, in the order of the
// fields.
func (p *projection) append(dst, object []byte) []byte {
	dst = append(dst, '{')
	first := true
	for _, c := range p.children {
		before := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(doc.AppendString(dst, c.name), ':')
		value := memberOf(object, c.name)
		at := len(dst)
		switch {
		case value == nil:
		case c.whole:
			dst = append(dst, value...)
		default:
			if dst = c.append(dst, value); string(dst[at:]) == "{}" {
				dst = dst[:at]
			}
		}
		if len(dst) == at {
			dst = dst[:before] // there is nothing of it in this document
			continue
		}
		first = false
	}
	return append(dst, '}')
}

// memberOf returns the raw value of a member of an object, or of an element of
// an array that is named by its number; nil when there is none.
func memberOf(value []byte, name string) []byte {
	if doc.IsObject(value) {
		return bodyMember(value, name)
	}
	n, err := strconv.Atoi(name)
	if err != nil || !doc.IsArray(value) {
		return nil
	}
	var found []byte
	_ = doc.EachElement(value, func(element []byte) error { // well-formed: a part of a stored document
		if n == 0 {
			found = element
		}
		n--
		return nil
	})
	return found
}
