package query

import (
	"strings"

	"divan/storage/doc"
)

// Cover makes of a key of an index the part of the document that the key has. It
// never changes and is safe for concurrent use.
type Cover struct {
	pieces [][]byte // before each value, in the order of places, and behind the last
	places []int    // in the key
}

// NewCover returns what makes the part of a document that has those fields, in the
// order of the key. None of them is a part of another.
func NewCover(fields []string) (*Cover, error) {
	c := &Cover{}
	root := &coverNode{place: -1}
	for i, field := range fields {
		names, err := splitField(field)
		if err != nil {
			return nil, err
		}
		n := root
		for _, name := range names {
			n = n.kid(name)
		}
		n.place = i
	}
	rest := c.add(root, nil)
	c.pieces = append(c.pieces, rest)
	return c, nil
}

type coverNode struct {
	name  string
	place int
	kids  []*coverNode
}

func (n *coverNode) kid(name string) *coverNode {
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	k := &coverNode{name: name, place: -1}
	n.kids = append(n.kids, k)
	return k
}

// add appends the text of a node; text is the text that has been written since the
// last value.
func (c *Cover) add(n *coverNode, text []byte) []byte {
	if n.place >= 0 {
		c.pieces, c.places = append(c.pieces, text), append(c.places, n.place)
		return nil
	}
	if n.name != "" {
		text = append(text, '{')
	}
	for i, k := range n.kids {
		if i > 0 || n.name == "" {
			text = append(text, ',')
		}
		text = append(doc.AppendString(text, k.name), ':')
		text = c.add(k, text)
	}
	return append(text, '}')
}

// Append appends the text of a document with its id and the values of a key.
func (c *Cover) Append(dst []byte, id string, key []byte) []byte {
	dst = doc.AppendString(append(dst, `{"_id":`...), id)
	var inline [inlineSlots][]byte
	values := inline[:0]
	for e := (elements{text: key}); e.next(); {
		values = append(values, e.value)
	}
	for i, place := range c.places {
		dst = append(dst, c.pieces[i]...)
		if place < len(values) {
			dst = append(dst, values[place]...)
		} else {
			dst = append(dst, "null"...) // no key is too short
		}
	}
	return append(dst, c.pieces[len(c.pieces)-1]...)
}

// Nested reports whether one of the fields is a part of another.
func Nested(fields []string) bool {
	for i, a := range fields {
		for j, b := range fields {
			if i != j && (a == b || strings.HasPrefix(b, a+".")) {
				return true
			}
		}
	}
	return false
}
