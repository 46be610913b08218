package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"divan/replicator/endpoint"
	"divan/storage/doc"
	"divan/storage/fault"
	"divan/storage/memory"
)

const (
	// streamStart and streamMost are how much of an answer is read at once, in
	// bytes; a buffer grows while reads fill it.
	streamStart = 4 << 10
	streamMost  = 256 << 10
)

// errLong is the error of what is longer than it may be.
var errLong = errors.New("it is too long")

// tooLong is errLong as others see it.
func tooLong(what string, limit int) error {
	return fault.Wrap(fault.Unavailable, fmt.Sprintf("%s is larger than %d bytes", what, limit), errLong)
}

// stream cuts JSON text into values while it arrives. It holds one value, and
// what came with it. Its buffer is counted, and is given back by close.
type stream struct {
	ctx      context.Context //nolint:containedctx // of the answer: memory is waited for
	r        io.Reader
	hold     memory.Hold
	limit    int // of a value, in bytes
	buf      []byte
	pos, end int   // buf[pos:end] is unread
	err      error // of r, told when nothing is left
	// How far the value at pos has been looked through, so that one that comes
	// in many pieces is not looked through from its start each time.
	seen   int // bytes behind pos
	depth  int
	quoted bool
}

// stream returns one for an answer whose values have at most limit bytes.
func (c *client) stream(ctx context.Context, r io.Reader, limit int) *stream {
	return &stream{ctx: ctx, r: r, hold: c.memory.Hold(), limit: limit, buf: make([]byte, streamStart)}
}

// close gives the buffer back.
func (s *stream) close() {
	s.buf, s.pos, s.end, s.seen = nil, 0, 0, 0
	s.hold.Release()
}

// giveWay lets others have the processor while something large is read: a server that is near
// sends as fast as it is read.
func giveWay(size int) {
	if size > 1<<20 {
		runtime.Gosched()
	}
}

// fill reads more; the error is told when r has nothing more to give.
func (s *stream) fill() error {
	if s.err != nil {
		return s.err
	}
	switch {
	case s.pos == s.end:
		s.pos, s.end = 0, 0
	case s.pos > 0 && s.end == len(s.buf):
		copy(s.buf, s.buf[s.pos:s.end])
		s.pos, s.end = 0, s.end-s.pos
	}
	if s.end == len(s.buf) {
		size := min(2*len(s.buf), max(s.limit, streamStart))
		if size <= len(s.buf) {
			return tooLong("a value in the answer", s.limit)
		}
		if err := s.hold.Take(s.ctx, endpoint.MemoryFactor*int64(size-len(s.buf))); err != nil {
			return endpoint.NoMemory("a value in the answer", err)
		}
		s.grow(size)
	}
	giveWay(len(s.buf))
	n, err := s.r.Read(s.buf[s.end:min(len(s.buf), s.end+streamMost)])
	s.end += n
	s.err = err
	if size := 2 * len(s.buf); n > 0 && s.end == len(s.buf) && size <= min(streamMost, s.limit) {
		if ok, _ := s.hold.Try(endpoint.MemoryFactor * int64(size-len(s.buf))); ok {
			s.grow(size)
		}
	}
	if n > 0 {
		return nil
	}
	return err
}

// grow makes the buffer size bytes long. Its caller has taken the memory.
func (s *stream) grow(size int) {
	s.buf = enlarged(s.buf[s.pos:s.end], size)
	s.end = len(s.buf)
	s.pos, s.buf = 0, s.buf[:size]
}

// enlarged returns a copy of b with a capacity of size bytes. It copies in pieces: the runtime
// cannot interrupt a copy, and the collector holds every goroutine until all can be interrupted.
func enlarged(b []byte, size int) []byte {
	larger := make([]byte, 0, size)
	for piece := range slices.Chunk(b, streamMost) {
		larger = append(larger, piece...)
	}
	return larger
}

// rest gives memory back that a stream needs no more while it waits.
func (s *stream) rest() {
	if s.pos == s.end && len(s.buf) > streamStart {
		s.buf, s.pos, s.end = make([]byte, streamStart), 0, 0
		s.hold.Release()
	}
}

// peek returns the next byte that is no white space, and leaves it.
func (s *stream) peek() (byte, error) {
	for {
		if c, ok := s.ready(); ok {
			return c, nil
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// ready is peek without reading.
func (s *stream) ready() (byte, bool) {
	for s.pos < s.end {
		switch c := s.buf[s.pos]; c {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return c, true
		}
	}
	return 0, false
}

// expect takes the next byte, which must be c.
func (s *stream) expect(c byte) error {
	got, err := s.peek()
	if err != nil {
		return short(err)
	}
	if got != c {
		return errGarbage(got, c)
	}
	s.pos++
	return nil
}

func errGarbage(got, want byte) error {
	return fault.Newf(fault.Unavailable, "the answer is no JSON: %q instead of %q", got, want)
}

// short is the error of a text that ends too early.
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// value returns the next value, valid until the next call; its brackets are
// matched, and no more is checked.
func (s *stream) value() ([]byte, error) {
	if _, err := s.peek(); err != nil {
		return nil, short(err)
	}
	for {
		if v, ok := s.whole(); ok {
			return v, nil
		}
		if err := s.fill(); err != nil {
			if errors.Is(err, io.EOF) && s.depth == 0 && !s.quoted && s.seen > 0 {
				return s.take(s.seen), nil // a number at the end of the text
			}
			return nil, short(err)
		}
	}
}

// take returns the next n bytes as a value.
func (s *stream) take(n int) []byte {
	v := s.buf[s.pos : s.pos+n : s.pos+n]
	s.pos += n
	s.seen, s.depth, s.quoted = 0, 0, false
	return v
}

// whole returns the value at pos when all of it is there. White space before
// it has been skipped.
func (s *stream) whole() ([]byte, bool) {
	b := s.buf[s.pos:s.end]
	i := s.seen
	for i < len(b) {
		if s.quoted {
			next, closed := closing(b, i)
			i = next
			if !closed {
				break
			}
			s.quoted = false
			if s.depth == 0 {
				return s.take(i), true
			}
			continue
		}
		switch b[i] {
		case '"':
			s.quoted = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth == 0 {
				return s.take(i), true // behind a number
			}
			if s.depth--; s.depth == 0 {
				return s.take(i + 1), true
			}
		case ',', ':', ' ', '\n', '\r', '\t':
			if s.depth == 0 {
				return s.take(i), true
			}
		}
		i++
	}
	s.seen = i
	return nil, false
}

// closing returns the position behind the quote that ends the string that b[i]
// is in. Without one it returns where to go on.
func closing(b []byte, i int) (next int, closed bool) {
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return escaped(b, i), false
		}
		slashes := 0
		for k := i + n - 1; k >= i && b[k] == '\\'; k-- {
			slashes++
		}
		if i += n + 1; slashes%2 == 0 {
			return i, true
		}
	}
}

// escaped returns where the rest b[i:] of a string without a closing quote
// ends; a backslash whose other half has not arrived stays.
func escaped(b []byte, i int) int {
	slashes := 0
	for k := len(b) - 1; k >= i && b[k] == '\\'; k-- {
		slashes++
	}
	return len(b) - slashes%2
}

// leadingID returns the member id of the object that stands next and has not come whole,
// if it is the first member, as servers have it.
func (s *stream) leadingID() string {
	b := s.buf[s.pos:s.end]
	for _, want := range [...]string{"{", `"id"`, ":"} {
		if b = bytes.TrimLeft(b, " \n\r\t"); !bytes.HasPrefix(b, []byte(want)) {
			return ""
		}
		b = b[len(want):]
	}
	if b = bytes.TrimLeft(b, " \n\r\t"); len(b) == 0 || b[0] != '"' {
		return ""
	}
	end, closed := closing(b, 1)
	if !closed {
		return ""
	}
	id, _ := doc.Unquote(b[:end])
	return id
}

// list reads the elements of an array while it arrives: one that is all of the
// text, or a member of an object. What else the object has, other gets.
type list struct {
	*stream
	member string // empty: the array is the whole text
	other  func(name string, value []byte) error
	state  listState
}

type listState uint8

const (
	listBefore listState = iota
	listObject           // between the members of the object
	listInside           // between the elements
	listDone
)

// next returns the next element, valid until the next call. io.EOF: the text
// has ended as it should.
func (l *list) next() ([]byte, error) {
	for {
		switch l.state {
		case listBefore:
			open, state := byte('{'), listObject
			if l.member == "" {
				open, state = '[', listInside
			}
			if err := l.expect(open); err != nil {
				return nil, err
			}
			l.state = state
		case listObject:
			if err := l.members(); err != nil {
				return nil, err
			}
		case listInside:
			c, err := l.peek()
			switch {
			case err != nil:
				return nil, short(err)
			case c == ',':
				l.pos++
			case c == ']':
				l.pos++
				l.state = listObject
				if l.member == "" {
					l.state = listDone
				}
			default:
				return l.element()
			}
		default:
			return nil, io.EOF
		}
	}
}

// element returns the value that stands next.
func (l *list) element() ([]byte, error) {
	v, err := l.value()
	if err == nil && len(v) == 0 {
		err = fault.New(fault.Unavailable, "the answer is no JSON")
	}
	return v, err
}

// members reads members of the object up to the list or the end.
func (l *list) members() error {
	for {
		c, err := l.peek()
		switch {
		case err != nil:
			return short(err)
		case c == '}':
			l.pos++
			l.state = listDone
			return nil
		case c == ',':
			l.pos++
			continue
		case c != '"':
			return errGarbage(c, '"')
		}
		text, err := l.value()
		if err != nil {
			return err
		}
		name := string(text[1 : len(text)-1])
		if err := l.expect(':'); err != nil {
			return err
		}
		if c, err = l.peek(); err != nil {
			return short(err)
		}
		if name == l.member && c == '[' {
			l.pos++
			l.state = listInside
			return nil
		}
		value, err := l.element()
		if err != nil {
			return err
		}
		if err := l.other(name, value); err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
	}
}
