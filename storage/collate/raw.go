package collate

import (
	"bytes"
	"strconv"
	"strings"

	"divan/storage/doc"
)

// AppendRawKey appends the key of a JSON value for views with the option
// collation "raw": Erlang's order of terms. Kinds: numbers < false < null < true
// < objects < arrays < strings; strings, and the names of members, as bytes.
// Otherwise it is AppendKey.
func AppendRawKey(dst, value []byte) ([]byte, error) {
	value = bytes.TrimLeft(value, " \n\t\r")
	if len(value) == 0 {
		return dst, strconv.ErrSyntax
	}
	switch value[0] {
	case 'n':
		return append(dst, rawNull), nil
	case 'f':
		return append(dst, rawFalse), nil
	case 't':
		return append(dst, rawTrue), nil
	case '"':
		s, ok := unquote(value)
		if !ok {
			return dst, strconv.ErrSyntax
		}
		return appendRawString(dst, s), nil
	case '[':
		dst = append(dst, rawArray)
		err := doc.EachElement(value, func(item []byte) (err error) {
			dst, err = AppendRawKey(dst, item)
			return err
		})
		return append(dst, kindEnd), err
	case '{':
		dst = append(dst, rawObject)
		err := doc.EachMember(value, func(name string, member []byte) (err error) {
			dst, err = AppendRawKey(appendRawString(dst, name), member)
			return err
		})
		return append(dst, kindEnd), err
	}
	return appendNumber(append(dst, rawNumber), value)
}

// rawZero follows a zero byte of a raw string; one that does not is its end.
const rawZero = 0xff

func appendRawString(dst []byte, s string) []byte {
	dst = append(dst, rawString)
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, s[:i]...), 0, rawZero)
		s = s[i+1:]
	}
	return append(append(dst, s...), 0)
}

// Prefix returns the part of a key by which arrays that begin with the same n
// elements are equal: the key of such an array up to the end of the n-th. Of
// an array with fewer elements, and of any other value, it is the whole key. It
// takes the keys of AppendKey and of AppendRawKey. n is at least 1.
func Prefix(key []byte, n int) []byte {
	if len(key) == 0 || key[0] != kindArray && key[0] != rawArray {
		return key
	}
	i := 1
	for range n {
		next := behind(key, i)
		if next < 0 || key[i] == kindEnd {
			return key
		}
		i = next
	}
	return key[:i:i]
}

// behind returns the position behind the value that starts at key[i]: -1 when
// the key is cut off.
func behind(key []byte, i int) int {
	for depth := 0; i < len(key); {
		switch key[i] {
		case kindEnd:
			depth--
			i++
		case kindArray, kindObject, rawArray, rawObject:
			depth++
			i++
		case kindNumber, rawNumber:
			i = behindNumber(key, i+1)
		case kindString, rawString:
			i = behindString(key, i)
		default:
			i++
		}
		if depth <= 0 {
			return min(i, len(key))
		}
	}
	return -1
}

func behindString(key []byte, i int) int {
	raw := key[i] == rawString
	for i++; ; i++ {
		zero := bytes.IndexByte(key[i:], 0)
		if zero < 0 {
			return len(key)
		}
		i += zero
		if !raw || i+1 >= len(key) || key[i+1] != rawZero {
			return i + 1
		}
		i++
	}
}
