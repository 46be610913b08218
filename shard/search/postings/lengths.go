package postings

import "bytes"

// fieldLengths are the lengths of the documents in a field by their offsets, each as
// LengthByte; 0: it has none. Lists that are written in the order of their keys ask for one
// field after the other.
type fieldLengths struct {
	field []byte // as in a key; nil: none
	of    []byte
}

// begin makes space for the lengths of the field that a term, as in a key, begins with. other is
// false when they are those at hand.
func (l *fieldLengths) begin(key []byte) (field string, other bool) {
	if l.field != nil && bytes.HasPrefix(key, l.field) {
		return "", false
	}
	name, rest, ok := cutText(key)
	if !ok {
		rest = key // such a key has no field, and no lengths
	}
	l.field = append(l.field[:0], key[:len(key)-len(rest)]...)
	clear(l.of)
	return string(name), true
}
