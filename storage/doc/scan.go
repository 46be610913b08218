package doc

import "divan/storage/fault"

// MaxDepth is the number of nested arrays and objects that a JSON text may
// have, the outermost one included. CouchDB has no limit; one is needed so
// that no reader of a stored body can be made to run out of stack.
const MaxDepth = 1000

// scanner reads JSON text once, from left to right, checks it, and writes it
// in canonical form: the form in which CouchDB prints what it has parsed
// (golden docs/08). That is: no white space between tokens; strings with only
// the escapes JSON requires, control characters as \b \f \n \r \t or \u00XX;
// integers as they are, floats by their shortest digits.
//
// Text that is canonical already is not touched: src[mark:pos] is what has
// been read and needs no change but is not written yet, and it is written in
// one piece as soon as something differs.
type scanner struct {
	src   []byte
	pos   int // next byte to read
	mark  int // first byte that is read but not written
	dst   []byte
	depth int
	drop  bool // write nothing, only check
	signs bool // keep the sign of -0.0, which CouchDB's revision ids see
	deep  bool // failed because of MaxDepth
}

// err is the refusal after a failed scan.
func (s *scanner) err() error {
	if s.deep {
		return fault.Newf(fault.BadRequest, "JSON is nested more than %d levels deep", MaxDepth)
	}
	return errJSON()
}

// errJSON is CouchDB's refusal for every text that is no JSON.
func errJSON() *fault.Error { return fault.New(fault.BadRequest, "invalid UTF-8 JSON") }

// flushTo writes what is pending before src[end] and continues at end.
func (s *scanner) flushTo(end int) {
	if !s.drop && end > s.mark {
		s.dst = append(s.dst, s.src[s.mark:end]...)
	}
	s.mark = end
}

// space skips white space and returns the byte after it, 0 at the end of the
// text (a zero byte in the text itself is no legal token either).
func (s *scanner) space() byte {
	if s.pos >= len(s.src) {
		return 0
	}
	c := s.src[s.pos]
	if c > ' ' {
		return c
	}
	s.flushTo(s.pos)
	i := s.pos
	for i < len(s.src) && isSpace(s.src[i]) {
		i++
	}
	s.pos, s.mark = i, i
	if i >= len(s.src) {
		return 0
	}
	return s.src[i]
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// atEnd skips white space and reports whether nothing follows.
func (s *scanner) atEnd() bool {
	s.space()
	return s.pos >= len(s.src)
}

// nesting remembers for each open level of one value whether it is an object.
type nesting [MaxDepth/64 + 1]uint64

func (n *nesting) set(level int, object bool) {
	bit := uint64(1) << (level % 64)
	if object {
		n[level/64] |= bit
	} else {
		n[level/64] &^= bit
	}
}

func (n *nesting) object(level int) bool { return n[level/64]&(1<<(level%64)) != 0 }

// value reads one JSON value, with the white space before it. It is a loop and
// not recursive: depth costs a bit a level.
func (s *scanner) value() bool {
	c := s.space()
	if c != '{' && c != '[' {
		return s.scalar(c)
	}
	var levels nesting
	base := s.depth
	for {
		var empty bool
		switch c = s.space(); c {
		case '{', '[':
			if !s.open(&levels, c == '{') {
				return false
			}
			if c == '{' {
				empty = s.space() == '}'
				if !empty && !s.key() {
					return false
				}
			} else {
				empty = s.space() == ']'
			}
			if !empty {
				continue
			}
		default:
			if !s.scalar(c) {
				return false
			}
		}
		more, ok := s.close(&levels, base)
		if !ok {
			return false
		}
		if !more {
			return true
		}
	}
}

// open enters an array or object.
func (s *scanner) open(levels *nesting, object bool) bool {
	if s.depth >= MaxDepth {
		s.deep = true
		return false
	}
	levels.set(s.depth, object)
	s.depth++
	s.pos++
	return true
}

// close reads what follows a complete value inside the levels above base: any
// number of closing brackets, then a comma and, in an object, the next name.
// more tells that another value follows.
func (s *scanner) close(levels *nesting, base int) (more, ok bool) {
	for s.depth > base {
		c := s.space()
		s.pos++
		object := levels.object(s.depth - 1)
		switch {
		case c == ',':
			if object {
				s.space()
				return true, s.key()
			}
			return true, true
		case c == '}' && object, c == ']' && !object:
			s.depth--
		default:
			return false, false
		}
	}
	return false, true
}

// key reads the name of a member and the colon after it. The caller has
// skipped the white space before.
func (s *scanner) key() bool {
	if s.pos >= len(s.src) || s.src[s.pos] != '"' || !s.str() {
		return false
	}
	return s.colon()
}

func (s *scanner) colon() bool {
	if s.space() != ':' {
		return false
	}
	s.pos++
	return true
}

// scalar reads a string, number or literal that starts with c.
func (s *scanner) scalar(c byte) bool {
	switch c {
	case '"':
		return s.str()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number(c)
}

func (s *scanner) literal(word string) bool {
	end := s.pos + len(word)
	if end > len(s.src) || string(s.src[s.pos:end]) != word {
		return false
	}
	s.pos = end
	return true
}
