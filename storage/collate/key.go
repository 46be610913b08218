package collate

import (
	"bytes"
	"strconv"
	"unsafe"

	"divan/storage/doc"
)

// The kinds of values, in their order. 0 ends an array or an object, so that a
// prefix sorts first.
const (
	kindEnd byte = iota
	kindNull
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// The kinds of values in raw keys, in their order there.
const (
	rawNumber byte = iota + 0x10
	rawFalse
	rawNull
	rawTrue
	rawObject
	rawArray
	rawString
)

// AppendKey appends the key of a JSON value, given as its text. The text must
// have been validated before; the error is that of text which is no JSON.
func AppendKey(dst, value []byte) ([]byte, error) {
	i := 0
	for i < len(value) && (value[i] == ' ' || value[i] == '\n' || value[i] == '\t' || value[i] == '\r') {
		i++
	}
	value = value[i:]
	if len(value) == 0 {
		return dst, strconv.ErrSyntax
	}
	switch value[0] {
	case 'n':
		return append(dst, kindNull), nil
	case 'f':
		return append(dst, kindFalse), nil
	case 't':
		return append(dst, kindTrue), nil
	case '"':
		s, ok := unquote(value)
		if !ok {
			return dst, strconv.ErrSyntax
		}
		dst = append(dst, kindString)
		dst = AppendString(dst, s)
		return append(dst, 0), nil
	case '[':
		return appendArray(append(dst, kindArray), value)
	case '{':
		return appendObject(append(dst, kindObject), value)
	}
	return appendNumber(append(dst, kindNumber), value)
}

// unquote returns the text of a JSON string; without escapes it is the memory
// of value.
func unquote(value []byte) (string, bool) {
	if n := len(value); n >= 2 && value[n-1] == '"' && bytes.IndexByte(value, '\\') < 0 {
		text := value[1 : n-1]
		return unsafe.String(unsafe.SliceData(text), len(text)), true
	}
	return doc.Unquote(value)
}

func appendArray(dst, value []byte) ([]byte, error) {
	err := doc.EachElement(value, func(item []byte) (err error) {
		dst, err = AppendKey(dst, item)
		return err
	})
	return append(dst, kindEnd), err
}

func appendObject(dst, value []byte) ([]byte, error) {
	err := doc.EachMember(value, func(name string, member []byte) (err error) {
		dst = append(dst, kindString)
		dst = AppendString(dst, name)
		dst = append(dst, 0)
		dst, err = AppendKey(dst, member)
		return err
	})
	return append(dst, kindEnd), err
}

// MaxKey is greater than every key: an upper bound that is never reached.
const MaxKey = "\xff"
