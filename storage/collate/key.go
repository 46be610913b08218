package collate

import (
	"bytes"
	"encoding/binary"
	"math"
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

func appendNumber(dst, value []byte) ([]byte, error) {
	f, err := number(value)
	if err != nil {
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
	return binary.BigEndian.AppendUint64(dst, bits), nil
}

// exactDigits is how many digits an integer may have to be certainly a double.
const exactDigits = 15

// number returns the value of a JSON number; beyond the doubles it is infinity.
func number(value []byte) (float64, error) {
	end := len(value)
	for end > 0 && value[end-1] <= ' ' {
		end--
	}
	value = value[:end]
	i, negative := 0, false
	if end > 0 && value[0] == '-' {
		i, negative = 1, true
	}
	if n := end - i; n > 0 && n <= exactDigits {
		var v int64
		for ; i < end && value[i]-'0' <= 9; i++ {
			v = v*10 + int64(value[i]-'0')
		}
		if i == end {
			if negative {
				v = -v
			}
			return float64(v), nil
		}
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if math.IsInf(f, 0) {
		return f, nil
	}
	return f, err
}

// MaxKey is greater than every key: an upper bound that is never reached.
const MaxKey = "\xff"
