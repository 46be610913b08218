package query

import (
	"encoding/hex"
	"strings"
)

// Names of the fields of Mango's full-text indexes: the keys of a path, each encoded, joined
// by dots, and behind them the type of the value. An element of an array has the key [].

// ArrayKey stands for any element of an array.
const ArrayKey = "[]"

// The types at the end of names, with their colon encoded.
const (
	TextString  = "_3astring"
	TextNumber  = "_3anumber"
	TextBoolean = "_3aboolean"
	TextNull    = "_3anull"
	TextLength  = "_3alength" // of an array, whose path ends in ArrayKey
)

// AppendTextKey appends the encoded form of a key: of its bytes, those that are neither
// letters nor digits of ASCII become an underscore and two hexadecimal digits.
func AppendTextKey(dst []byte, key string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '_', digits[c>>4], digits[c&15])
		}
	}
	return dst
}

// AppendTextPath appends the encoded form of a path, as the fields of selectors have it: at
// dots, save those behind a backslash, a key ends.
func AppendTextPath(dst []byte, path string) ([]byte, error) {
	names, err := splitField(path)
	if err != nil {
		return dst, err
	}
	for i, name := range names {
		if i > 0 {
			dst = append(dst, '.')
		}
		dst = AppendTextKey(dst, name)
	}
	return dst, nil
}

// DecodeTextName returns a name with its keys and its type as people write them.
func DecodeTextName(name string) string {
	parts := strings.Split(name, "_")
	out := []byte(parts[0])
	for _, part := range parts[1:] {
		code, err := hex.DecodeString(part[:min(2, len(part))])
		if len(part) < 2 || err != nil { // not encoded
			return name
		}
		out = append(append(out, code...), part[2:]...)
	}
	return string(out)
}
