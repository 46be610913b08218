package script

import (
	"bytes"

	"divan/storage/doc"
)

// project appends the object doc with only the named members. Names with
// escapes are kept: they could be any. It is false when doc is no well-formed
// object as far as it looks.
func project(dst, doc []byte, names []string) ([]byte, bool) {
	i := space(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return dst, false
	}
	dst = append(dst, '{')
	first := len(dst)
	for i = space(doc, i+1); i < len(doc) && doc[i] == '"'; i = space(doc, i+1) {
		start := i
		end := endOfString(doc, i)
		if end-start < 2 {
			return dst, false
		}
		name := doc[start+1 : end-1]
		i = space(doc, end)
		if i >= len(doc) || doc[i] != ':' {
			return dst, false
		}
		if i = endOfValue(doc, space(doc, i+1)); i >= len(doc) {
			return dst, false
		}
		if wanted(name, names) {
			if len(dst) > first {
				dst = append(dst, ',')
			}
			dst = append(dst, doc[start:i]...)
		}
		if i = space(doc, i); i >= len(doc) || doc[i] != ',' {
			break
		}
	}
	if i >= len(doc) || doc[i] != '}' || space(doc, i+1) != len(doc) {
		return dst, false
	}
	return append(dst, '}'), true
}

func wanted(name []byte, names []string) bool {
	for _, n := range names {
		if string(name) == n {
			return true
		}
	}
	return bytes.IndexByte(name, '\\') >= 0
}

// space skips white space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// endOfString is the index behind the string that begins at i.
func endOfString(b []byte, i int) int {
	for i++; i < len(b); {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			break
		}
		j += i
		slashes := 0
		for b[j-1-slashes] == '\\' {
			slashes++
		}
		i = j + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// endOfValue is the index behind the value that begins at i.
func endOfValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = endOfString(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// documentID is the id of a document, for the log.
func documentID(text []byte) string {
	id, _ := doc.Unquote(doc.Lookup(text, "_id"))
	return bounded(id)
}
