package query

import "bytes"

// A JSON text may have several members of one name in an object. The last one
// counts, as for every parser that clients use, and a value that is compared as
// a whole is compared without the others, as a client reads it and would write
// it back.

// Once returns a canonical value in which each object has each name once, with its last
// value at its first place. It is v itself when that holds already.
func Once(v []byte) []byte {
	if bytes.IndexByte(v, '{') < 0 {
		return v // the usual case: a scalar, or an array of them
	}
	if _, twice := findTwice(v, 0); !twice {
		return v
	}
	_, out := appendOnce(nil, v, 0)
	return out
}

// names are those of the members of one object.
type names struct {
	few   [8][]byte
	count int
	index map[string]int // by name, when they are too many to search
}

// add returns the number of a name, and whether it was there.
func (n *names) add(name []byte) (at int, there bool) {
	if n.index != nil {
		if at, there = n.index[string(name)]; !there {
			at = n.count
			n.index[string(name)] = at
			n.count++
		}
		return at, there
	}
	for at = range n.count {
		if string(n.few[at]) == string(name) {
			return at, true
		}
	}
	at = n.count
	n.count++
	if at < len(n.few) {
		n.few[at] = name
		return at, false
	}
	n.index = make(map[string]int, 2*n.count)
	for i, earlier := range n.few {
		n.index[string(earlier)] = i
	}
	n.index[string(name)] = at
	return at, false
}

// findTwice reports whether an object at or below text[i] has a name twice, and
// returns the position behind the value.
func findTwice(text []byte, i int) (end int, twice bool) {
	if i >= len(text) || text[i] != '{' && text[i] != '[' {
		return skipValue(text, i), false
	}
	isObject := text[i] == '{'
	var seen names
	for i++; i < len(text) && text[i] != '}' && text[i] != ']'; {
		if text[i] == ',' {
			i++
			continue
		}
		if isObject {
			name := i
			i = skipString(text, i)
			if _, there := seen.add(text[name:i]); there {
				return len(text), true
			}
			i++ // the colon
		}
		if i, twice = findTwice(text, i); twice {
			return i, true
		}
	}
	return i + 1, false
}

// appendOnce appends the value at text[i] with each name once, and returns the
// position behind it.
func appendOnce(dst, text []byte, i int) (end int, out []byte) {
	if i >= len(text) || text[i] != '{' && text[i] != '[' {
		end = skipValue(text, i)
		return end, append(dst, text[min(i, end):end]...)
	}
	opening, start := text[i], len(dst)
	var seen names
	var parts [][2]int // of each member what dst[start:] has of it
	twice := false
	dst = append(dst, opening)
	for i++; i < len(text) && text[i] != '}' && text[i] != ']'; {
		if text[i] == ',' {
			i++
			continue
		}
		if len(dst) > start+1 {
			dst = append(dst, ',')
		}
		from := len(dst)
		at, there := 0, false
		if opening == '{' {
			name := i
			i = min(skipString(text, i)+1, len(text)) // with the colon
			at, there = seen.add(text[name : i-1])
			dst = append(dst, text[name:i]...)
		}
		i, dst = appendOnce(dst, text, i)
		switch part := [2]int{from - start, len(dst) - start}; {
		case opening == '[':
		case there:
			parts[at], twice = part, true
		default:
			parts = append(parts, part)
		}
	}
	if twice {
		whole := bytes.Clone(dst[start:])
		dst = append(dst[:start], opening)
		for n, part := range parts {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, whole[part[0]:part[1]]...)
		}
	}
	return i + 1, append(dst, opening+2) // the closing brace or bracket
}
