package query

import (
	"bytes"
	"cmp"
	"fmt"

	"divan/storage/collate"
)

// literal is a value that documents are compared with.
type literal struct {
	kind  kind
	plain bool // a string of printable ASCII: see plain
	num   numeral
	text  []byte // canonical
	key   []byte // collation key of a string, array or object
}

func newLiteral(text []byte) (literal, error) {
	text = Once(text)
	l := literal{kind: kindOf(text), text: text}
	switch l.kind {
	case kindNumber:
		l.num = number(text)
	case kindString, kindArray, kindObject:
		l.plain = l.kind == kindString && plain(text)
		key, err := collate.AppendKey(nil, text)
		if err != nil {
			return l, fmt.Errorf("key of a selector's argument: %w", err)
		}
		l.key = key
	default:
	}
	return l, nil
}

// equal reports whether v is equal to l.
func (w *Work) equal(l *literal, v []byte, raw bool) bool {
	if bytes.Equal(l.text, v) {
		return true
	}
	if k := kindOf(v); k != l.kind {
		return false
	} else if k == kindString && (raw || l.plain && plain(v)) {
		return false
	}
	return w.compare(l, v, raw) == 0
}

// compare orders v against l: negative when v is less.
func (w *Work) compare(l *literal, v []byte, raw bool) int {
	k := kindOf(v)
	if raw && (k == kindString || l.kind == kindString) {
		// Erlang's own order, in which ids are stored: strings are the greatest.
		if k != l.kind {
			return cmp.Compare(boolInt(k == kindString), boolInt(l.kind == kindString))
		}
		return compareBytes(v, l.text)
	}
	if k != l.kind {
		return cmp.Compare(k, l.kind)
	}
	switch k {
	case kindNumber:
		return compareNumbers(number(v), l.num)
	case kindString:
		if l.plain && plain(v) {
			return comparePlain(v, l.text)
		}
	case kindArray, kindObject:
	default:
		return 0
	}
	return bytes.Compare(w.key(v), l.key)
}

// key returns the collation key of v, good until the next call.
func (w *Work) key(v []byte) []byte {
	if !w.take(keyByte * len(v)) {
		return nil
	}
	key, err := collate.AppendKey(w.scratch[:0], Once(v))
	if err != nil {
		return nil // v is no canonical text
	}
	w.scratch = key
	return key
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
