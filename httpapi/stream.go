package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"divan/shard"
)

// streamBuffer is how much of a streamed answer is collected before it goes to
// the socket, in bytes.
const streamBuffer = 32 << 10

// wholeLimit bounds an answer that is kept until its end, in bytes.
const wholeLimit = 64 << 20

// errHeadDone ends the work for a HEAD as soon as the headers are out.
var errHeadDone = errors.New("the answer to HEAD is complete")

// streamWriter writes a body whose length is not known beforehand. Nothing is
// sent before the buffer is full or Flush is called, so an error up to then
// still gets its own status; with buffer_response that holds for the whole
// answer, unless it is flushed in between or grows beyond wholeLimit. The first
// error of the connection sticks and is returned by every
// later call, so that the work behind it stops.
//
// Exactly one of Close (the answer is complete) or an error returned by the
// handler ends it; both give the buffer back.
type streamWriter struct {
	c        *call
	buf      []byte
	status   int
	whole    bool // buffer_response: keep everything until Close
	callback bool // a JSONP prologue was written
	docs     *docWriter
	err      error
}

// stream starts a streamed answer of status 200. An empty contentType is the
// negotiated JSON type. Headers of the endpoint are set before the first Flush.
func (c *call) stream(contentType string) *streamWriter {
	h := c.w.Header()
	if contentType != "" {
		h["Content-Type"] = []string{contentType}
	}
	s := &streamWriter{c: c, buf: c.api.chunks.get(), status: http.StatusOK}
	buffered, _ := c.qs("buffer_response")
	s.whole = buffered == "true" || (buffered == "" && c.cfg.Chttpd.BufferResponse)
	c.streaming = s
	if contentType == "" {
		c.setJSONType(h)
		if callback := c.jsonp(); callback != "" {
			s.callback = true
			s.buf = append(append(append(s.buf, "/* CouchDB */"...), callback...), '(')
		}
	}
	return s
}

// SetStatus changes the status of an answer of which nothing was sent yet.
func (s *streamWriter) SetStatus(status int) { s.status = status }

// Write implements io.Writer.
func (s *streamWriter) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.buf = append(s.buf, p...)
	if err := s.spill(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteString is Write for text.
func (s *streamWriter) WriteString(text string) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.buf = append(s.buf, text...)
	if err := s.spill(); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Append lets the caller append to the buffer itself, for rows that are built
// with append functions and never need a copy.
func (s *streamWriter) Append(fn func(dst []byte) []byte) error {
	if s.err != nil {
		return s.err
	}
	s.buf = fn(s.buf)
	return s.spill()
}

// writeDoc writes a document of the database of the call, with the content of
// its attachments where the style asks for that.
func (s *streamWriter) writeDoc(ctx context.Context, d *shard.Doc, style docStyle) error {
	if !style.inline(d) {
		s.buf = style.appendDoc(s.buf, d)
		return s.spill()
	}
	if s.docs == nil {
		s.docs = newDocWriter(s, s.c.db)
	}
	return s.docs.write(ctx, d, style)
}

// failed returns the error of the connection, nil as long as there is none.
func (s *streamWriter) failed() error { return s.err }

// spill sends the buffer when it is full.
func (s *streamWriter) spill() error {
	if len(s.buf) < streamBuffer || s.whole && len(s.buf) < wholeLimit {
		return nil
	}
	return s.send()
}

func (s *streamWriter) send() error {
	if s.err != nil {
		return s.err
	}
	if !s.c.w.started() {
		s.c.w.WriteHeader(s.status)
	}
	if s.c.head {
		s.buf, s.err = s.buf[:0], errHeadDone
		return s.err
	}
	if _, err := s.c.w.Write(s.buf); err != nil {
		s.err = err
	}
	s.buf = s.buf[:0]
	return s.err
}

// Flush sends what there is to the client now: for feeds that wait.
func (s *streamWriter) Flush() error {
	if err := s.send(); err != nil {
		return err
	}
	s.c.w.Flush()
	return nil
}

// Close ends a complete answer.
func (s *streamWriter) Close() error {
	if s.callback {
		s.buf = append(s.buf, ");"...)
	}
	err := s.send()
	s.release()
	return err
}

// fail ends an answer with an error: it reports whether a byte was sent, in
// which case the error is appended to the stream, as CouchDB does.
func (s *streamWriter) fail(f failure) (sent bool) {
	sent = s.c.w.started()
	if sent && s.err == nil {
		s.buf = append(f.appendJSON(append(s.buf, "\n\n"...)), '\n')
		s.err = s.send()
	}
	s.release()
	return sent
}

func (s *streamWriter) release() {
	if s.c.streaming == s {
		s.c.streaming = nil
	}
	s.c.api.chunks.put(s.buf)
	s.buf = nil
	if s.err == nil {
		s.err = errors.New("write to a closed stream")
	}
}

// chunkPool lends the buffers of streams.
type chunkPool struct{ pool sync.Pool }

func (p *chunkPool) get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, streamBuffer+4096)
}

func (p *chunkPool) put(b []byte) {
	if c := cap(b); c >= streamBuffer && c <= 4*streamBuffer {
		p.pool.Put(&b)
	}
}
