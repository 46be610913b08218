package collate

import (
	"encoding/binary"
	"math"
	"strconv"

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
		s, ok := doc.Unquote(value)
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
	return appendNumber(dst, value)
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

func appendNumber(dst, value []byte) ([]byte, error) {
	end := len(value)
	for end > 0 && value[end-1] <= ' ' {
		end--
	}
	f, err := strconv.ParseFloat(string(value[:end]), 64)
	if err != nil && !math.IsInf(f, 0) {
		return dst, err
	}
	if f == 0 {
		f = 0 // -0 equals 0
	}
	bits := math.Float64bits(f)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(append(dst, kindNumber), bits), nil
}

// MaxKey is greater than every key: an upper bound that is never reached.
const MaxKey = "\xff"
