package query

import (
	"encoding/binary"
	"math/bits"
)

// The scans below read canonical text, where no white space stands between
// tokens. They do not check it: on other text their results mean nothing, but
// they neither panic nor loop.

// kind is the type of a value, in the order in which types compare.
type kind uint8

const (
	kindNone kind = iota // no value
	kindNull
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// kindOf tells the kind of a value by its first byte.
func kindOf(value []byte) kind {
	if len(value) == 0 {
		return kindNone
	}
	switch value[0] {
	case '"':
		return kindString
	case '{':
		return kindObject
	case '[':
		return kindArray
	case 'n':
		return kindNull
	case 'f':
		return kindFalse
	case 't':
		return kindTrue
	}
	return kindNumber
}

// Eight bytes at a time: a byte of each and the highest bit of each.
const (
	eachOne   = 0x0101010101010101
	eachTop   = 0x8080808080808080
	eachQuote = '"' * eachOne
	eachSlash = '\\' * eachOne
)

// skipString returns the position behind the string that starts at text[i].
func skipString(text []byte, i int) int {
	for i++; i+8 <= len(text); {
		w := binary.LittleEndian.Uint64(text[i:])
		quote, slash := w^eachQuote, w^eachSlash
		// The top bit of the first zero byte of each is set, and none before.
		at := ((quote-eachOne)&^quote | (slash-eachOne)&^slash) & eachTop
		if at == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(at) / 8
		if text[i] == '"' {
			return i + 1
		}
		i += 2
	}
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(text)
}

// skipValue returns the position behind the value that starts at text[i].
func skipValue(text []byte, i int) int {
	if i >= len(text) {
		return len(text)
	}
	switch text[i] {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipNested(text, i)
	}
	for i < len(text) && text[i] != ',' && text[i] != '}' && text[i] != ']' {
		i++
	}
	return i
}

// skipNested returns the position behind the array or object at text[i].
func skipNested(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = skipString(text, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(text)
}

// members reads an object member by member.
type members struct {
	text  []byte // the object
	pos   int
	name  []byte // of the current member, with its quotes
	value []byte // of the current member
}

// next moves to the next member.
func (m *members) next() bool {
	i := m.pos + 1 // behind the brace or the comma
	if i >= len(m.text) || m.text[i] != '"' {
		return false
	}
	end := skipString(m.text, i)
	if end >= len(m.text) {
		return false
	}
	m.pos = skipValue(m.text, end+1)
	m.name, m.value = m.text[i:end], m.text[end+1:m.pos]
	return true
}

// elements reads an array item by item.
type elements struct {
	text  []byte // the array
	pos   int
	value []byte // the current item
}

// next moves to the next item.
func (e *elements) next() bool {
	i := e.pos + 1 // behind the bracket or the comma
	if i >= len(e.text) || e.text[i] == ']' {
		return false
	}
	e.pos = skipValue(e.text, i)
	e.value = e.text[i:e.pos]
	return true
}
