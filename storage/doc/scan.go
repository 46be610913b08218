package doc

import (
	"bytes"
	"math"
	"strconv"

	"divan/storage/fault"
)

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
// Text that is canonical already is not touched: src[mark:pos] has been read
// and needs no change but is not written yet; it is written in one piece as
// soon as something differs.
type scanner struct {
	src   []byte
	pos   int // next byte to read
	mark  int // first byte that is read but not written
	dst   []byte
	depth int
	drop  bool // write nothing, only check
	signs bool // keep the sign of -0.0, which CouchDB's revision ids see
	deep  bool // failed because of MaxDepth
	names nameCheck
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

// skipSpace skips white space and returns the byte after it, 0 at the end of the
// text (a zero byte in the text itself is no legal token either).
func (s *scanner) skipSpace() byte {
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
	s.skipSpace()
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
	c := s.skipSpace()
	if c != '{' && c != '[' {
		return s.scalar(c)
	}
	var levels nesting
	base := s.depth
	for {
		var empty bool
		switch c = s.skipSpace(); c {
		case '{', '[':
			if !s.open(&levels, c == '{') {
				return false
			}
			if c == '{' {
				empty = s.skipSpace() == '}'
				if !empty && !s.key() {
					return false
				}
			} else {
				empty = s.skipSpace() == ']'
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
	if object {
		s.names.open()
	}
	s.depth++
	s.pos++
	return true
}

// close reads what follows a complete value inside the levels above base: any
// number of closing brackets, then a comma and, in an object, the next name.
// more tells that another value follows.
func (s *scanner) close(levels *nesting, base int) (more, ok bool) {
	for s.depth > base {
		c := s.skipSpace()
		s.pos++
		object := levels.object(s.depth - 1)
		switch {
		case c == ',':
			if object {
				s.skipSpace()
				return true, s.key()
			}
			return true, true
		case c == '}' && object:
			s.names.close()
			s.depth--
		case c == ']' && !object:
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
	return s.pos < len(s.src) && s.src[s.pos] == '"' && s.name() && s.colon()
}

// name reads the name of a member; src[pos] is its opening quote.
func (s *scanner) name() bool {
	from := s.pos
	if !s.str() {
		return false
	}
	if s.names.on {
		s.names.add(s.src[from:s.pos])
	}
	return true
}

func (s *scanner) colon() bool {
	if s.skipSpace() != ':' {
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

// lowExponent is the least exponent of its first digit with which a float prints in decimal
// form, as CouchDB's printer has it; see AppendFloat.
const lowExponent = -6

// exactDigits is how many decimal digits a float64 always tells apart: a
// decimal of no more digits, without superfluous zeros, is the shortest one
// for its float.
const exactDigits = 15

// number reads a number that starts with c. Integers of any size stay as they
// are; a number with a fraction or an exponent is a float64.
func (s *scanner) number(c byte) bool {
	start := s.pos
	i := start
	if c == '-' {
		i++
	}
	first := i
	for i < len(s.src) && isDigit(s.src[i]) {
		i++
	}
	digits := i - first
	if digits == 0 || digits > 1 && s.src[first] == '0' {
		return false
	}
	if i >= len(s.src) || s.src[i] != '.' && s.src[i]|0x20 != 'e' {
		s.pos = i
		if c == '-' && digits == 1 && s.src[first] == '0' {
			s.flushTo(start)
			s.mark = first // -0 is 0
		}
		return true
	}
	fraction := i
	if s.src[i] == '.' {
		for i++; i < len(s.src) && isDigit(s.src[i]); i++ {
		}
		if i == fraction+1 {
			return false
		}
		if i >= len(s.src) || s.src[i]|0x20 != 'e' {
			s.pos = i
			return shortest(s.src[first:fraction], s.src[fraction+1:i]) || s.float(start)
		}
	}
	i++ // e
	if i < len(s.src) && (s.src[i] == '+' || s.src[i] == '-') {
		i++
	}
	exponent := i
	for i < len(s.src) && isDigit(s.src[i]) {
		i++
	}
	s.pos = i
	return i > exponent && s.float(start)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// shortest reports whether a number with these digits before and after the
// point is certainly written as AppendFloat writes it. It may say no to one
// that is.
func shortest(whole, fraction []byte) bool {
	last := len(fraction) - 1
	if len(whole)+len(fraction) > exactDigits {
		return false
	}
	if whole[0] != '0' {
		return fraction[last] != '0' || last == 0
	}
	if fraction[last] == '0' {
		return false // also 0.0, which may have a sign to lose
	}
	for i := range -lowExponent {
		if i <= last && fraction[i] != '0' {
			return true
		}
	}
	return false
}

// float replaces src[start:pos] by its canonical form. It fails when the
// number is too large for a float64.
func (s *scanner) float(start int) bool {
	f, err := strconv.ParseFloat(string(s.src[start:s.pos]), 64)
	if err != nil {
		return false
	}
	s.flushTo(start)
	s.mark = s.pos
	switch {
	case s.drop:
	case s.signs && f == 0 && math.Signbit(f):
		s.dst = append(s.dst, negativeZero...)
	default:
		s.dst = AppendFloat(s.dst, f)
	}
	return true
}

// negativeZero is the one float that CouchDB keeps otherwise than it prints it.
const negativeZero = "-0.0"

// StoredBody returns the body of an envelope as it is stored and answered:
// without the signs of zeros. It is body itself as a rule.
func StoredBody(body []byte) []byte {
	if !bytes.Contains(body, []byte(negativeZero)) {
		return body
	}
	stored, err := Canonical(nil, body)
	if err != nil {
		return body
	}
	return stored
}

// AppendFloat appends f as CouchDB prints it: the shortest digits that read
// back as f, always with a fraction or an exponent; both zeros are 0.0.
func AppendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, "0.0"...)
	}
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		for _, c := range dst[start:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, ".0"...)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv writes at least two digits of the exponent.
	if n := len(dst); dst[n-2] == '0' && !isDigit(dst[n-3]) {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
