package core

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"time"

	"divan/storage/doc"
	"divan/storage/fault"
)

// ReadJSON reads a whole JSON body, inflated, and checks nothing of its
// content. A request without any body is refused; an empty one is left to the
// parser.
func (c *Call) ReadJSON() ([]byte, error) {
	if !c.HasBody() {
		return nil, fault.New(fault.BadRequest, "Missing request body")
	}
	return c.ReadBody(0)
}

// ReadValue is ReadJSON for a body that has to be JSON: it returns the canonical text.
func (c *Call) ReadValue() ([]byte, error) {
	body, err := c.ReadJSON()
	if err != nil {
		return nil, err
	}
	return doc.Canonical(nil, body)
}

// HasBody reports whether the request announced a body, even one of no bytes.
func (c *Call) HasBody() bool {
	return c.Request.ContentLength != 0 || len(c.Request.Header["Content-Length"]) != 0
}

// body is what has become of the body of a request.
type body struct {
	reader   patientReader
	turn     limitedParse
	text     []byte // all of it, until the answer begins: the request may begin again
	read     bool   // text is it
	streamed bool   // it went elsewhere while it came, and cannot be had again
}

// ReadBody reads and inflates a body of any kind, an absent one as no bytes.
// limit is the most bytes wanted after inflation, 0 for the server's own cap.
func (c *Call) ReadBody(limit int64) ([]byte, error) {
	b := &c.scratch.body
	if b.read {
		return b.text, nil
	}
	start := time.Now()
	defer func() { c.bodyTime += time.Since(start) }()
	limit = c.BodyLimit(limit)
	if c.Request.Header["Content-Encoding"] != nil {
		limit = min(limit, maxInflated)
	}
	body, length, err := c.inflate()
	if err != nil {
		return nil, err
	}
	out, err := c.readAll(body, length, limit)
	b.turn.end()
	if err != nil {
		return nil, c.bodyFailure(err)
	}
	b.text, b.read = out, true
	return out, nil
}

// bodyFailure is what a client is told of an error while its body was read.
func (c *Call) bodyFailure(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return c.TooLarge()
	case isFault(err):
		return err
	case isGzipError(err) && c.Request.Header.Get("Content-Encoding") == "gzip":
		return errNotGzip()
	default:
		return errUnreadable(err)
	}
}

// ReadSmall is ReadBody for a body that need not be in memory: one of more than
// large bytes is returned as a reader of all of it. Its errors are those of ReadBody.
func (c *Call) ReadSmall(large int64) (text []byte, rest io.Reader, err error) {
	b := &c.scratch.body
	if b.read || c.Request.ContentLength >= 0 && c.Request.ContentLength <= large && c.Request.Header["Content-Encoding"] == nil {
		text, err = c.ReadBody(0)
		return text, nil, err
	}
	start := time.Now()
	defer func() { c.bodyTime += time.Since(start) }()
	if c.Request.ContentLength > c.set.maxRequestSize {
		return nil, nil, c.TooLarge()
	}
	body, _, err := c.inflate()
	if err != nil {
		return nil, nil, err
	}
	text, err = c.readAll(io.LimitReader(body, large), -1, large)
	switch {
	case err != nil:
		b.turn.end()
		return nil, nil, c.bodyFailure(err)
	case int64(len(text)) < large:
		b.turn.end()
		b.text, b.read = text, true
		return text, nil, nil
	}
	b.streamed = true // and the turn goes on until EndBody
	return nil, &largeBody{c: c, r: io.MultiReader(bytes.NewReader(text), body), left: c.BodyLimit(0)}, nil
}

// largeBody is a body that is read while something is made of it. It gives way to
// other requests: inflating takes the processor for as long as it is let.
type largeBody struct {
	c    *Call
	r    io.Reader
	left int64 // bytes that it may still have
}

// Read implements io.Reader.
func (b *largeBody) Read(p []byte) (int, error) {
	runtime.Gosched()
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.c.TooLarge()
	}
	if err != nil && err != io.EOF { //nolint:errorlint // an end is never wrapped
		err = b.c.bodyFailure(err)
	}
	return n, err
}

// EndBody tells that nothing more is read of what ReadSmall has returned.
func (c *Call) EndBody() { c.scratch.body.turn.end() }

// maxInflated bounds, in bytes, what a compressed body may become that is not
// made for documents: lists of keys and ids.
const maxInflated = 64 << 20

// ReadDocument is ReadBody for the text of one document. One that comes compressed
// is inflated up to [couchdb] max_document_size only: it costs who sends it nothing.
func (c *Call) ReadDocument() ([]byte, error) {
	if coding := c.Request.Header["Content-Encoding"]; len(coding) != 0 && coding[0] == "gzip" {
		return c.ReadBody(c.Config.CouchDB.MaxDocumentSize)
	}
	return c.ReadBody(0)
}

// ReadPart reads a whole part of a body, of at most as many bytes as a body may
// have.
func (c *Call) ReadPart(part io.Reader) ([]byte, error) {
	text, err := c.readAll(part, -1, c.BodyLimit(0))
	if errors.Is(err, errTooLarge) {
		return nil, c.TooLarge()
	}
	return text, err
}

func isFault(err error) bool { return errors.As(err, new(*fault.Error)) }

// BodyLimit returns the smaller of a limit of the endpoint and the server's.
func (c *Call) BodyLimit(limit int64) int64 {
	if c.DBName == "" && c.nobody() && (limit <= 0 || limit > nobodysBytes) {
		limit = nobodysBytes
	}
	if most := c.set.maxRequestSize; limit <= 0 || limit > most {
		return most
	}
	return limit
}

// gzipFactor is how much more work a compressed byte may be, nearly.
const gzipFactor = 256

// inflate returns the body as a reader of identity bytes and their number, -1
// when it is unknown.
func (c *Call) inflate() (io.Reader, int64, error) {
	patient, body := &c.scratch.body.reader, &c.scratch.body.turn
	*patient = c.patientBody(c.Request.Body)
	*body = limitedParse{r: patient, places: c.API.parsing, free: freeBytes}
	switch coding := c.Request.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return body, c.Request.ContentLength, nil
	case "gzip":
		body.free /= gzipFactor
		z, err := gzip.NewReader(body)
		if err == nil {
			return z, -1, nil
		}
		body.end() // the rest of the body is waited for before the answer
		if isFault(err) {
			return nil, 0, err
		}
		return nil, 0, errNotGzip()
	default:
		return nil, 0, fault.New(fault.BadContentType, coding+" is not a supported content encoding.")
	}
}

// bodyReader returns the body for endpoints that stream it (attachments,
// multipart): the transfer bytes as they come, capped at the server's limit.
func (c *Call) bodyReader() io.ReadCloser {
	c.scratch.body.streamed = true
	return http.MaxBytesReader(c.Response, c.Request.Body, c.set.maxRequestSize)
}

func errNotGzip() error {
	return fault.New(fault.BadRequest, "Request body is not properly gzipped.")
}

// TooLarge is the refusal of a body above the cap. The rest of the body is not
// read: the connection cannot be used again.
func (c *Call) TooLarge() error {
	c.Response.Header().Set("Connection", "close")
	return errTooLong()
}

func errTooLong() *fault.Error {
	return fault.New(fault.RequestTooLarge, "the request entity is too large")
}

func isGzipError(err error) bool {
	return errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || strings.HasPrefix(err.Error(), "flate: ")
}

var errTooLarge = errors.New("body too large")

// MediaType returns a Content-Type without its parameters.
func MediaType(value string) string {
	if i := strings.IndexByte(value, ';'); i >= 0 {
		value = value[:i]
	}
	return strings.TrimSpace(value)
}
