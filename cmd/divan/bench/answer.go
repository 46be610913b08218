package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// answer reads one answer of an HTTP/1 server as its bytes come. It is made for
// a client that must cost little: it looks at no header that the bench does not
// need, keeps no more of the body than it is told to, and is used again for the
// next answer of the connection.
type answer struct {
	status int
	etag   []byte // value of the ETag header, empty when there was none
	body   []byte // its first bytes, up to keep
	keep   int
	closes bool // the connection ends with this answer

	state   answerState
	line    []byte // the beginning of a line whose end has not come
	lines   int    // bytes of lines since the answer or the chunk began
	left    int64  // bytes of the body or of the chunk that are still to come
	length  int64  // of the body; -1 when the header does not say
	chunked bool
	old     bool // HTTP/1.0, where a connection ends unless the header says otherwise
	final   bool // a Connection header says that it ends
}

// answerState is what answer waits for.
type answerState uint8

const (
	atStatus answerState = iota
	atHeader
	atBody
	atRest // a body that ends with the connection
	atChunkSize
	atChunk
	atChunkEnd
	atTrailer
	atEnd
)

// maxLines bounds the header, and the lines around a chunk.
const maxLines = 64 << 10

// errMalformed is the error of bytes that are no answer of HTTP/1.
var errMalformed = errors.New("malformed answer")

// reset makes a ready for the next answer.
func (a *answer) reset() {
	*a = answer{keep: a.keep, etag: a.etag[:0], body: a.body[:0], line: a.line[:0], length: -1}
}

// done reports whether the answer is complete.
func (a *answer) done() bool { return a.state == atEnd }

// feed takes the bytes that came. It returns those that follow the answer: on a
// connection with one request at a time there are none.
func (a *answer) feed(p []byte) ([]byte, error) {
	for len(p) > 0 && a.state != atEnd {
		if a.state == atBody || a.state == atRest || a.state == atChunk {
			p = a.content(p)
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if a.lines += end + 1; end < 0 {
			a.lines += len(p)
		}
		if a.lines > maxLines {
			return p, fmt.Errorf("%w: more than %d bytes of header", errMalformed, maxLines)
		}
		if end < 0 {
			a.line = append(a.line, p...)
			return nil, nil
		}
		line := p[:end]
		if len(a.line) > 0 {
			a.line = append(a.line, line...)
			line = a.line
		}
		p = p[end+1:]
		if err := a.take(bytes.TrimSuffix(line, []byte{'\r'})); err != nil {
			return p, err
		}
		a.line = a.line[:0]
	}
	return p, nil
}

// end says that the connection has ended.
func (a *answer) end() error {
	if a.state == atRest {
		a.state = atEnd
	}
	if a.state != atEnd {
		return fmt.Errorf("the connection ended within the answer: %w", io.ErrUnexpectedEOF)
	}
	return nil
}

// content takes a piece of the body.
func (a *answer) content(p []byte) []byte {
	n := len(p)
	if a.state != atRest {
		n = int(min(int64(n), a.left))
		a.left -= int64(n)
	}
	if room := a.keep - len(a.body); room > 0 {
		a.body = append(a.body, p[:min(n, room)]...)
	}
	if a.state != atRest && a.left == 0 {
		if a.state == atBody {
			a.state = atEnd
		} else {
			a.state = atChunkEnd
		}
	}
	return p[n:]
}

// take takes a line, without its end.
func (a *answer) take(line []byte) error {
	switch a.state {
	case atStatus:
		return a.statusLine(line)
	case atHeader:
		if len(line) == 0 {
			return a.headerEnd()
		}
		return a.header(line)
	case atChunkSize:
		return a.chunkSize(line)
	case atChunkEnd:
		if len(line) > 0 {
			return fmt.Errorf("%w: %.40q after a chunk", errMalformed, line)
		}
		a.state, a.lines = atChunkSize, 0
	default: // atTrailer
		if len(line) == 0 {
			a.state = atEnd
		}
	}
	return nil
}

// statusLine takes a line like "HTTP/1.1 200 OK".
func (a *answer) statusLine(line []byte) error {
	const before = len("HTTP/1.1 ")
	if len(line) < before+3 || string(line[:7]) != "HTTP/1." || line[7]&^1 != '0' || line[8] != ' ' ||
		len(line) > before+3 && line[before+3] != ' ' {
		return fmt.Errorf("%w: it begins with %.40q", errMalformed, line)
	}
	status, ok := digits(line[before : before+3])
	if !ok || status < http.StatusContinue || status == http.StatusSwitchingProtocols {
		return fmt.Errorf("%w: it begins with %.40q", errMalformed, line)
	}
	a.status, a.old, a.state = int(status), line[7] == '0', atHeader
	a.closes = a.old
	return nil
}

// header takes a line of the header.
func (a *answer) header(line []byte) error {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || line[0] == ' ' || line[0] == '\t' {
		return fmt.Errorf("%w: %.40q is no header", errMalformed, line)
	}
	value := bytes.Trim(line[colon+1:], " \t")
	switch name := line[:colon]; {
	case is(name, "content-length"):
		n, ok := digits(value)
		if !ok || a.length >= 0 && a.length != n {
			return fmt.Errorf("%w: the length %.40q", errMalformed, value)
		}
		a.length = n
	case is(name, "transfer-encoding"):
		if a.old || a.chunked || !is(value, "chunked") {
			return fmt.Errorf("%w: the transfer encoding %.40q", errMalformed, value)
		}
		a.chunked = true
	case is(name, "connection"):
		a.connection(value)
	case is(name, "etag") && len(a.etag) == 0:
		a.etag = append(a.etag, value...)
	}
	return nil
}

// connection takes the value of a Connection header.
func (a *answer) connection(value []byte) {
	for token := range bytes.SplitSeq(value, []byte{','}) {
		switch token = bytes.Trim(token, " \t"); {
		case is(token, "close"):
			a.closes, a.final = true, true
		case is(token, "keep-alive") && a.old:
			a.closes = a.final
		}
	}
}

// headerEnd finds out how the body ends.
func (a *answer) headerEnd() error {
	switch {
	case a.status < http.StatusOK: // "100 Continue" and the like: the answer comes yet
		a.reset()
	case a.status == http.StatusNoContent, a.status == http.StatusNotModified:
		a.state = atEnd
	case a.chunked:
		a.state, a.lines = atChunkSize, 0
	case a.length > 0:
		a.state, a.left = atBody, a.length
	case a.length == 0:
		a.state = atEnd
	default:
		a.state, a.closes = atRest, true
	}
	return nil
}

// chunkSize takes the line before a chunk.
func (a *answer) chunkSize(line []byte) error {
	size, _, _ := bytes.Cut(line, []byte{';'})
	size = bytes.TrimRight(size, " \t")
	if len(size) == 0 || len(size) > 15 {
		return fmt.Errorf("%w: the chunk size %.40q", errMalformed, line)
	}
	a.left = 0
	for _, c := range size {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return fmt.Errorf("%w: the chunk size %.40q", errMalformed, line)
		}
		a.left = a.left<<4 | int64(c)
	}
	if a.state = atChunk; a.left == 0 {
		a.state = atTrailer
	}
	return nil
}

// digits reads a decimal number of at most 18 digits.
func digits(p []byte) (int64, bool) {
	var n int64
	for _, c := range p {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(p) > 0 && len(p) <= 18
}

// is compares p with lower-case letters, whatever the case of p.
func is(p []byte, lower string) bool {
	return len(p) == len(lower) && bytes.EqualFold(p, []byte(lower))
}
