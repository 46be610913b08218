package query

import (
	"strconv"
	"strings"

	"divan/storage/doc"
)

// step is one name of a path.
type step struct {
	name  []byte // as it stands in the text of an object, with its quotes
	index int    // as an index into an array, -1 when it is none
}

func newStep(name string) step {
	s := step{name: doc.AppendString(nil, name), index: -1}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 {
		s.index = i
	}
	return s
}

// splitField splits a path at its dots, save those behind a backslash;
// backslashes themselves vanish from the names.
func splitField(field string) ([]string, error) {
	var names []string
	from := 0
	for i := 0; i <= len(field); i++ {
		if i < len(field) && (field[i] != '.' || i > 0 && field[i-1] == '\\') {
			continue
		}
		if i == from {
			return nil, invalid("invalid_field_name", "Invalid field name: "+field)
		}
		names = append(names, strings.ReplaceAll(field[from:i], `\`, ""))
		from = i + 1
	}
	return names, nil
}

// found is the result of following a path.
type found uint8

const (
	present found = iota
	missing       // an object on the way lacks the member
	barred        // the path leads through something that has no such part
)

// follow returns the value at a path below v.
func follow(v []byte, path []step) ([]byte, found) {
	for i := range path {
		next, f := path[i].of(v)
		if f != present {
			return nil, f
		}
		v = next
	}
	return v, present
}

// of returns the part of v that the step names. Of members with the same name
// the last counts.
func (s *step) of(v []byte) ([]byte, found) {
	switch kindOf(v) {
	case kindObject:
		var value []byte
		state := missing
		for m := (members{text: v}); m.next(); {
			if string(m.name) == string(s.name) {
				value, state = m.value, present
			}
		}
		return value, state
	case kindArray:
		if s.index < 0 {
			return nil, barred
		}
		e := elements{text: v}
		for i := 0; e.next(); i++ {
			if i == s.index {
				return e.value, present
			}
		}
	default:
	}
	return nil, barred
}

// slots are the names of the top-level members that a selector needs.
type slots struct {
	names [][]byte       // with quotes
	index map[string]int // by name, when they are too many to search
}

// add returns the slot of a name.
func (s *slots) add(name string) int {
	quoted := doc.AppendString(nil, name)
	if slot := s.find(quoted); slot >= 0 {
		return slot
	}
	slot := len(s.names)
	s.names = append(s.names, quoted)
	if s.index != nil {
		s.index[string(quoted)] = slot
	} else if len(s.names) > inlineSlots {
		s.index = make(map[string]int, len(s.names))
		for i, n := range s.names {
			s.index[string(n)] = i
		}
	}
	return slot
}

// fill appends the value of each slot in the document, nil where there is
// none. It reads the document to its end: of members with the same name the
// last counts.
func (s *slots) fill(dst [][]byte, document []byte) [][]byte {
	for range s.names {
		dst = append(dst, nil)
	}
	for i := 1; i < len(document) && document[i] == '"'; i++ {
		from := i
		i = skipString(document, i)
		slot := s.find(document[from:i])
		from = i + 1
		i = skipValue(document, from)
		if slot >= 0 && from < i {
			dst[slot] = document[from:i]
		}
	}
	return dst
}

// find returns the slot of a name, -1 when the selector does not need it.
func (s *slots) find(name []byte) int {
	if s.index != nil {
		if slot, ok := s.index[string(name)]; ok {
			return slot
		}
		return -1
	}
	for slot, n := range s.names {
		if string(n) == string(name) {
			return slot
		}
	}
	return -1
}
