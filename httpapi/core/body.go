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

	"divan/cluster/config"
	"divan/httpapi/conns"
	"divan/shard"
	"divan/storage/doc"
	"divan/storage/fault"
)

// Body is the body of a request: it is read within its limits, of size, time and memory, and inflated.
type Body struct {
	request  *http.Request
	response *Response // has the deadlines of the connection
	memory   *Memory
	config   *config.Snapshot
	most     int64       // bytes that a body may have
	user     *shard.User // of the call, who is not known from the beginning
	target   *Target     // likewise
	pools    *bodyPools
	peer     *conns.Conn // nil: the request came another way

	arrived func()        // to be called once the body of an unauthenticated client is there; nil: done
	spent   time.Duration // reading it
	over    bool          // nothing more is read of it

	reader   patientReader
	turn     limitedParse
	text     []byte // all of it, until the answer begins: the request may begin again
	kept     int64  // bytes of memory that text has taken
	read     bool   // text is it
	streamed bool   // it went elsewhere while it came, and cannot be had again
}

// bodyPools are shared by the bodies of all requests.
type bodyPools struct {
	pieces  piecePool
	texts   textPool
	parsing parseLimit
}

// ReadJSON reads a whole JSON body, inflated, and checks nothing of its
// content. A request without any body is refused; an empty one is left to the
// parser.
func (b *Body) ReadJSON() ([]byte, error) {
	if !b.Announced() {
		return nil, fault.New(fault.BadRequest, "Missing request body")
	}
	return b.ReadAll(0)
}

// ReadValue is ReadJSON for a body that has to be JSON: it returns the canonical text.
func (b *Body) ReadValue() ([]byte, error) {
	body, err := b.ReadJSON()
	if err != nil {
		return nil, err
	}
	return doc.Canonical(nil, body)
}

// Announced reports whether the request announced a body, even one of no bytes.
func (b *Body) Announced() bool {
	return b.request.ContentLength != 0 || len(b.request.Header["Content-Length"]) != 0
}

// ReadAll reads and inflates a body of any kind, an absent one as no bytes.
// limit is the most bytes wanted after inflation, 0 for the server's own cap.
func (b *Body) ReadAll(limit int64) ([]byte, error) {
	if b.read {
		return b.text, nil
	}
	start := time.Now()
	defer func() { b.spent += time.Since(start) }()
	limit = b.Limit(limit)
	if b.request.Header["Content-Encoding"] != nil {
		limit = min(limit, maxInflated)
	}
	in, length, err := b.inflate()
	if err != nil {
		return nil, err
	}
	before := b.memory.hold.Held()
	out, err := b.readPieces(in, length, limit)
	b.turn.end()
	if err != nil {
		return nil, b.failure(err)
	}
	b.keep(out, before)
	return out, nil
}

// keep keeps the text of all of the body, for which the request has taken memory since it held
// before bytes.
func (b *Body) keep(text []byte, before int64) {
	b.text, b.kept, b.read = text, b.memory.hold.Held()-before, true
}

// failure returns the error that a client is told when reading its body failed with err.
func (b *Body) failure(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return b.response.TooLarge()
	case isFault(err):
		return err
	case isGzipError(err) && b.request.Header.Get("Content-Encoding") == "gzip":
		return errNotGzip()
	default:
		return errUnreadable(err)
	}
}

// ReadSmall is ReadAll for a body that need not be in memory: one of more than
// large bytes is returned as a reader of all of it. Its errors are those of ReadAll.
func (b *Body) ReadSmall(large int64) (text []byte, rest io.Reader, err error) {
	if b.read || b.request.ContentLength >= 0 && b.request.ContentLength <= large && b.request.Header["Content-Encoding"] == nil {
		text, err = b.ReadAll(0)
		return text, nil, err
	}
	start := time.Now()
	defer func() { b.spent += time.Since(start) }()
	if b.request.ContentLength > b.most {
		return nil, nil, b.response.TooLarge()
	}
	in, _, err := b.inflate()
	if err != nil {
		return nil, nil, err
	}
	before := b.memory.hold.Held()
	text, err = b.readPieces(io.LimitReader(in, large), -1, large)
	switch {
	case err != nil:
		b.turn.end()
		return nil, nil, b.failure(err)
	case int64(len(text)) < large:
		b.turn.end()
		b.keep(text, before)
		return text, nil, nil
	}
	b.streamed = true // and the turn goes on until End
	return nil, &largeBody{body: b, r: io.MultiReader(bytes.NewReader(text), in), left: b.Limit(0)}, nil
}

// largeBody is a body that is read while something is made of it. It gives way to
// other requests: inflating takes the processor for as long as it is let.
type largeBody struct {
	body *Body
	r    io.Reader
	left int64 // bytes that it may still have
}

// Read implements io.Reader.
func (b *largeBody) Read(p []byte) (int, error) {
	runtime.Gosched()
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.body.response.TooLarge()
	}
	if err != nil && err != io.EOF { //nolint:errorlint // an end is never wrapped
		err = b.body.failure(err)
	}
	return n, err
}

// End tells that nothing more is read of what ReadSmall has returned.
func (b *Body) End() { b.turn.end() }

// maxInflated bounds, in bytes, what a compressed body may become that is not
// made for documents: lists of keys and ids.
const maxInflated = 64 << 20

// ReadDocument is ReadAll for the text of one document. One that comes compressed
// is inflated up to [couchdb] max_document_size only: it costs who sends it nothing.
func (b *Body) ReadDocument() ([]byte, error) {
	if coding := b.request.Header["Content-Encoding"]; len(coding) != 0 && coding[0] == "gzip" {
		return b.ReadAll(b.config.CouchDB.MaxDocumentSize)
	}
	return b.ReadAll(0)
}

// ReadPart reads a whole part of a body, of at most as many bytes as a body may
// have.
func (b *Body) ReadPart(part io.Reader) ([]byte, error) {
	text, err := b.readPieces(part, -1, b.Limit(0))
	if errors.Is(err, errTooLarge) {
		return nil, b.response.TooLarge()
	}
	return text, err
}

func isFault(err error) bool { return errors.As(err, new(*fault.Error)) }

// Limit returns the smaller of a limit of the endpoint and the server's.
func (b *Body) Limit(limit int64) int64 {
	if b.target.DBName == "" && b.ofStranger() && (limit <= 0 || limit > nobodysBytes) {
		limit = nobodysBytes
	}
	if most := b.most; limit <= 0 || limit > most {
		return most
	}
	return limit
}

// gzipFactor is how much more work a compressed byte may be, nearly.
const gzipFactor = 256

// inflate returns the body as a reader of identity bytes and their number, -1
// when it is unknown.
func (b *Body) inflate() (io.Reader, int64, error) {
	b.reader = b.patient(b.request.Body)
	b.turn = limitedParse{r: &b.reader, places: b.pools.parsing, free: freeBytes}
	switch coding := b.request.Header.Get("Content-Encoding"); coding {
	case "", "identity":
		return &b.turn, b.request.ContentLength, nil
	case "gzip":
		b.turn.free /= gzipFactor
		z, err := gzip.NewReader(&b.turn)
		if err == nil {
			return z, -1, nil
		}
		b.turn.end() // the rest of the body is waited for before the answer
		if isFault(err) {
			return nil, 0, err
		}
		return nil, 0, errNotGzip()
	default:
		return nil, 0, fault.New(fault.BadContentType, coding+" is not a supported content encoding.")
	}
}

// transferred returns the body for endpoints that stream it (attachments,
// multipart): the transfer bytes as they come, capped at the server's limit.
func (b *Body) transferred() io.ReadCloser {
	b.streamed = true
	return http.MaxBytesReader(b.response, b.request.Body, b.most)
}

func errNotGzip() error {
	return fault.New(fault.BadRequest, "Request body is not properly gzipped.")
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

// RequireJSON refuses a request whose media type is not application/json
// (endpoints marked CT in api.md). The comparison is exact, as CouchDB's.
func (b *Body) RequireJSON() error {
	if MediaType(b.request.Header.Get("Content-Type")) == "application/json" {
		return nil
	}
	return fault.New(fault.BadContentType, "Content-Type must be application/json")
}

// RefuseForms is RequireJSON for endpoints that CouchDB lets a client call without
// any content type: what a page of another site can send is refused. A browser sends
// the form of a page with a content type, and Origin with every POST of a page.
func (b *Body) RefuseForms() error {
	if h := b.request.Header; len(h["Content-Type"]) == 0 && len(h["Origin"]) == 0 {
		return nil
	}
	return b.RequireJSON()
}
