package doc

import (
	"bytes"

	"divan/storage/fault"
)

const notRequestObject = "Request body must be a JSON object"

// Canonical appends the canonical form of text, one JSON value with optional
// white space around it, to dst: what CouchDB would print for it (see the
// package's scanner; golden docs/08). Members of an object keep their order; of
// several with one name the last stays, at its place. It fails with fault.BadRequest
// "invalid UTF-8 JSON" for anything that is no JSON text, for a float that
// does not fit, and for nesting beyond MaxDepth; what was appended until then
// is not part of the result.
func Canonical(dst, text []byte) ([]byte, error) {
	s := scanner{src: text, dst: dst, names: nameCheck{on: true}}
	err := s.whole()
	if err == nil && s.names.twice {
		s = scanner{src: lastMembers(text), dst: dst}
		err = s.whole()
	}
	if err != nil {
		return dst, err
	}
	return s.dst, nil
}

// whole reads one value, which is all of the text.
func (s *scanner) whole() error {
	if !s.value() {
		return s.err()
	}
	s.flushTo(s.pos)
	return s.end()
}

// EachMember calls fn for each member of the JSON object obj, in order, with
// its name and the raw text of its value, which aliases obj and has no white
// skipSpace around it. Members of the same name are all reported. It stops at the
// first error of fn and returns it; malformed text gives fault.BadRequest
// "invalid UTF-8 JSON", possibly after fn has seen some members. A value that
// is no object gives fault.BadRequest "Request body must be a JSON object".
func EachMember(obj []byte, fn func(name string, value []byte) error) error {
	s := scanner{src: obj, drop: true}
	if s.skipSpace() != '{' {
		return s.wrongType(notRequestObject)
	}
	s.pos++
	s.depth++
	if s.skipSpace() == '}' {
		s.pos++
		return s.end()
	}
	for {
		s.skipSpace()
		from := s.pos
		if from >= len(obj) || obj[from] != '"' || !s.str() {
			return s.err()
		}
		name, ok := Unquote(obj[from:s.pos])
		if !ok || !s.colon() {
			return s.err()
		}
		value, ok := s.raw()
		if !ok {
			return s.err()
		}
		if err := fn(name, value); err != nil {
			return err
		}
		more, ok := s.comma('}')
		if !ok {
			return s.err()
		}
		if !more {
			return s.end()
		}
	}
}

// Lookup returns the raw value of a member of a well-formed object, the last of
// that name; nil when there is none or the value is no object.
func Lookup(value []byte, name string) []byte {
	if !IsObject(value) {
		return nil
	}
	var found []byte
	_ = EachMember(value, func(member string, v []byte) error { // fails for text that is not well-formed only
		if member == name {
			found = v
		}
		return nil
	})
	return found
}

// EachElement calls fn for each element of the JSON array arr, in order, with
// its raw text, which aliases arr and has no white space around it. It stops
// at the first error of fn and returns it; malformed text gives
// fault.BadRequest "invalid UTF-8 JSON", possibly after fn has seen some
// elements. A value that is no array gives fault.BadRequest "Request body must
// be a JSON array".
func EachElement(arr []byte, fn func(value []byte) error) error {
	s := scanner{src: arr, drop: true}
	if s.skipSpace() != '[' {
		return s.wrongType("Request body must be a JSON array")
	}
	s.pos++
	s.depth++
	if s.skipSpace() == ']' {
		s.pos++
		return s.end()
	}
	for {
		value, ok := s.raw()
		if !ok {
			return s.err()
		}
		if err := fn(value); err != nil {
			return err
		}
		more, ok := s.comma(']')
		if !ok {
			return s.err()
		}
		if !more {
			return s.end()
		}
	}
}

// raw reads one value and returns its text as it is.
func (s *scanner) raw() ([]byte, bool) {
	s.skipSpace()
	from := s.pos
	if !s.value() {
		return nil, false
	}
	return s.src[from:s.pos:s.pos], true
}

// comma reads what follows an element: a comma (more) or the closing bracket.
func (s *scanner) comma(closing byte) (more, ok bool) {
	c := s.skipSpace()
	if c != ',' && c != closing {
		return false, false
	}
	s.pos++
	return c == ',', true
}

// end fails when anything but white space follows.
func (s *scanner) end() error {
	if !s.atEnd() {
		return s.err()
	}
	return nil
}

// wrongType is the refusal for a text that is JSON, but not of the type asked
// for; malformed text is told first.
func (s *scanner) wrongType(reason string) error {
	if !s.value() || !s.atEnd() {
		return s.err()
	}
	return fault.New(fault.BadRequest, reason)
}

// IsObject reports whether the raw text of a value, as EachMember and
// EachElement hand it out, is an object.
func IsObject(value []byte) bool { return bytes.HasPrefix(value, []byte("{")) }

// IsArray is IsObject for arrays.
func IsArray(value []byte) bool { return bytes.HasPrefix(value, []byte("[")) }
