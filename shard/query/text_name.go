package query

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
	const hex = "0123456789abcdef"
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			dst = append(dst, c)
		} else {
			dst = append(dst, '_', hex[c>>4], hex[c&15])
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
