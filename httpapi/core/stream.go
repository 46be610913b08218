package core

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"divan/cluster"
	"divan/cluster/docformat"
	"divan/shard"
)

// StreamBuffer is how much of a streamed answer is collected before it goes to
// the socket, in bytes.
const StreamBuffer = 32 << 10

// wholeLimit bounds an answer that is kept until its end, in bytes.
const wholeLimit = 64 << 20

// errHeadDone ends the work for a HEAD as soon as the headers are out.
var errHeadDone = errors.New("the answer to HEAD is complete")

// Stream writes a body whose length is not known beforehand. Nothing is
// sent before the buffer is full or Flush is called, so an error up to then
// still gets its own status; with buffer_response that holds for the whole
// answer, unless it is flushed in between, grows beyond wholeLimit or finds no memory. The first
// error of the connection sticks and is returned by every
// later call, so that the work behind it stops.
//
// Exactly one of Close (the answer is complete) or an error returned by the
// handler ends it; both give the buffer back.
type Stream struct {
	w        *Response
	memory   *Memory
	db       *cluster.DB // of the call
	Buf      []byte
	status   int
	kept     int  // bytes that there is memory for
	whole    bool // buffer_response: keep everything until Close
	callback bool // a JSONP prologue was written
	docs     *docformat.Writer
	failure  error
}

// Stream starts a streamed answer of status 200. An empty contentType is the
// negotiated JSON type. Headers of the endpoint are set before the first Flush.
func (c *Call) Stream(contentType string) *Stream {
	w := c.Response
	h := w.Header()
	if contentType != "" {
		h["Content-Type"] = []string{contentType}
	}
	s := &Stream{w: w, memory: &c.Memory, db: c.DB, Buf: w.pools.get(), status: http.StatusOK}
	buffered, _ := c.QueryValue("buffer_response")
	s.whole = buffered == "true" || (buffered == "" && c.Config.Chttpd.BufferResponse)
	w.streaming = s
	if contentType == "" {
		w.setJSONType(h)
		if callback := w.jsonp(); callback != "" {
			s.callback = true
			s.Buf = append(append(append(s.Buf, "/* CouchDB */"...), callback...), '(')
		}
	}
	return s
}

// SetStatus changes the status of an answer of which nothing was sent yet.
func (s *Stream) SetStatus(status int) { s.status = status }

// Write implements io.Writer.
func (s *Stream) Write(p []byte) (int, error) {
	if s.failure != nil {
		return 0, s.failure
	}
	if len(p) >= StreamBuffer && !s.whole {
		return s.writeLarge(p)
	}
	s.Buf = append(s.Buf, p...)
	if err := s.Spill(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// writeLarge sends what fills a buffer without a copy in one, such as a chunk of
// an attachment.
func (s *Stream) writeLarge(p []byte) (int, error) {
	if err := s.send(); err != nil {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err != nil {
		s.failure = err
	}
	return n, err
}

// WriteString is Write for text.
func (s *Stream) WriteString(text string) (int, error) {
	if s.failure != nil {
		return 0, s.failure
	}
	s.Buf = append(s.Buf, text...)
	if err := s.Spill(); err != nil {
		return 0, err
	}
	return len(text), nil
}

// WriteDoc writes a document of the database of the call, with the content of
// its attachments where the style asks for that.
func (s *Stream) WriteDoc(ctx context.Context, d *shard.Doc, style docformat.Style) error {
	if !style.Inlines(d) {
		s.Buf = style.Append(s.Buf, d)
		return s.Spill()
	}
	if s.docs == nil {
		s.docs = docformat.NewWriter(s, s.db)
	}
	return s.docs.WriteDoc(ctx, d, style)
}

// Err returns the error of the connection, nil as long as there is none.
func (s *Stream) Err() error { return s.failure }

// Spill sends the buffer when it is full.
func (s *Stream) Spill() error {
	if len(s.Buf) < StreamBuffer || s.whole && len(s.Buf) < wholeLimit && s.keep() {
		return nil
	}
	return s.send()
}

// wholeStep is how much memory an answer takes at a time that is kept until its end.
const wholeStep = 512 << 10

// keep reports whether there is memory for what is kept: it counts as that of bodies.
// An answer that finds none is sent as it is made.
func (s *Stream) keep() bool {
	for s.whole && s.kept < len(s.Buf) {
		s.whole = s.memory.keep(wholeStep)
		s.kept += wholeStep
	}
	return s.whole
}

func (s *Stream) send() error {
	if s.failure != nil {
		return s.failure
	}
	if !s.w.Started() {
		s.w.WriteHeader(s.status)
	}
	if s.w.target.Head {
		s.Buf, s.failure = s.Buf[:0], errHeadDone
		return s.failure
	}
	if _, err := s.w.Write(s.Buf); err != nil {
		s.failure = err
	}
	s.Buf = s.Buf[:0]
	return s.failure
}

// Flush sends what there is to the client now: for feeds that wait.
func (s *Stream) Flush() error {
	if err := s.send(); err != nil {
		return err
	}
	s.w.Flush()
	return nil
}

// Begin sends what there is, so that a failure is told in the text of the answer and not
// by its status, unless all of it is kept to its end.
func (s *Stream) Begin() error {
	if s.whole {
		return nil
	}
	return s.Flush()
}

// Close ends a complete answer.
func (s *Stream) Close() error {
	if s.callback {
		s.Buf = append(s.Buf, ");"...)
	}
	err := s.send()
	s.release()
	return err
}

// fail ends an answer with an error: it reports whether a byte was sent, in
// which case the error is appended to the stream, as CouchDB does.
func (s *Stream) fail(f Failure) (sent bool) {
	sent = s.w.Started()
	if sent && s.failure == nil {
		s.Buf = append(f.AppendJSON(append(s.Buf, "\n\n"...)), '\n')
		s.failure = s.send()
	}
	s.release()
	return sent
}

func (s *Stream) release() {
	if s.w.streaming == s {
		s.w.streaming = nil
	}
	s.w.pools.put(s.Buf)
	s.Buf = nil
	if s.failure == nil {
		s.failure = errors.New("write to a closed stream")
	}
}

// chunkPool lends the buffers of streams.
type chunkPool struct{ pool sync.Pool }

func (p *chunkPool) get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, StreamBuffer+4096)
}

func (p *chunkPool) put(b []byte) {
	if c := cap(b); c >= StreamBuffer && c <= 4*StreamBuffer {
		p.pool.Put(&b)
	}
}
