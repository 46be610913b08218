package core

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"divan/cluster/config"
	"divan/storage/fault"
)

// Response is the http.ResponseWriter of a call. It knows what has been sent,
// drops the body of a HEAD, and adds at the last moment what every answer has.
type Response struct {
	inner   http.ResponseWriter
	request *http.Request
	target  *Target
	body    *Body
	config  *config.Snapshot
	set     *settings
	pools   *chunkPool

	Status    int     // 0 until the status line is out
	bytes     int64   // of the body
	streaming *Stream // the streamed answer under way
	// preflight says that this answers a CORS preflight request, whose headers
	// are complete.
	preflight bool
	// whole says that what comes here is an answer of the API, complete with its
	// headers.
	whole bool
}

// Header implements http.ResponseWriter.
func (w *Response) Header() http.Header { return w.inner.Header() }

// WriteHeader implements http.ResponseWriter. The second status of a request
// is ignored; an informational one (1xx) passes.
func (w *Response) WriteHeader(status int) {
	if w.Status != 0 {
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.inner.WriteHeader(status)
		return
	}
	w.Status = status
	if w.request.ContentLength != 0 {
		w.body.passOver()
	}
	if !w.whole {
		w.finishHeaders(status)
	}
	w.inner.WriteHeader(status)
}

// Write implements io.Writer: the first byte sends status 200 when none was
// set. The body of a HEAD and of a 304 is counted nowhere and dropped.
func (w *Response) Write(p []byte) (n int, err error) {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.target.Head || w.Status == http.StatusNotModified || w.Status == http.StatusNoContent {
		return len(p), nil
	}
	if !w.whole { // the answer to the rewritten request has said it
		w.body.peer.Expect(w.body.memory.rate(w.set))
	}
	for more := true; more && err == nil; more = n < len(p) {
		var one int
		one, err = w.inner.Write(p[n:min(len(p), n+maxWrite)])
		n += one
	}
	w.bytes += int64(n)
	return n, err
}

// maxWrite is how much is written to a connection at once, in bytes. Larger writes cost the kernel a third more per
// byte (docs/decisions/0048-attachments.md).
const maxWrite = 32 << 10

// Flush sends what is buffered to the client.
func (w *Response) Flush() {
	if w.Status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if f, ok := w.inner.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap lets http.ResponseController reach deadlines and full duplex.
func (w *Response) Unwrap() http.ResponseWriter { return w.inner }

// SetReadDeadline bounds how long a Read of the request's body may take; the
// zero time lifts it.
func (w *Response) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(w.inner).SetReadDeadline(t)
}

// Started reports whether the status line is out.
func (w *Response) Started() bool { return w.Status != 0 }

// Header values that are the same for every answer. net/http only reads them.
var (
	MustRevalidate = []string{"must-revalidate"}
	NoCache        = []string{"no-cache"}
	typeJSON       = []string{"application/json"}
	typeText       = []string{"text/plain; charset=utf-8"}
	typeScript     = []string{"application/javascript"}
	zeroTime       = []string{"0"}
)

// SendJSON answers with a compact JSON text without its newline: it adds the
// newline, Content-Length, Cache-Control and the negotiated Content-Type, and
// wraps the text for a JSONP callback. Headers of the endpoint are set before.
// A large text counts in the memory of the request until it is sent: without space for it
// a GET is refused, all others were carried out and have to say so.
func (w *Response) SendJSON(status int, body []byte) error {
	if err := w.Hold(len(body)); err != nil && status < http.StatusBadRequest {
		return err
	}
	h := w.Header()
	w.setJSONType(h)
	if callback := w.jsonp(); callback != "" {
		body = wrapCallback(callback, body)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body) + 1)}
	w.WriteHeader(status)
	if w.target.Head {
		return nil
	}
	buf := w.pools.get()
	defer func() { w.pools.put(buf) }()
	for len(body) >= StreamBuffer {
		buf = append(buf[:0], body[:StreamBuffer]...)
		if _, err := w.Write(buf); err != nil {
			return err
		}
		body = body[StreamBuffer:]
	}
	buf = append(append(buf[:0], body...), '\n')
	_, err := w.Write(buf)
	return err
}

// Hold counts an answer of n bytes that is complete in the memory of the request. The error
// is that of Memory.Hold for a GET; all other requests were carried out, and have to say so.
func (w *Response) Hold(n int) error {
	if n <= largeBuffer {
		return nil
	}
	if err := w.body.memory.Hold(n); err != nil && w.target.Method == http.MethodGet {
		return err
	}
	return nil
}

// largeBuffer is how much a text of SendJSON may have that counts nowhere, in bytes.
const largeBuffer = 256 << 10

// SendAppended is SendJSON for a text that is made in memory of the server's own.
func (w *Response) SendAppended(status int, text func(dst []byte) []byte) error {
	buf := text(w.pools.get())
	err := w.SendJSON(status, buf)
	w.pools.put(buf)
	return err
}

// SendOK answers {"ok":true}.
func (w *Response) SendOK(status int) error { return w.SendJSON(status, okBody) }

var okBody = []byte(`{"ok":true}`)

// SendEmpty answers with a status and without a body; not for 200 JSON answers.
func (w *Response) SendEmpty(status int) error {
	h := w.Header()
	if status != http.StatusNotModified && status != http.StatusNoContent {
		h["Content-Length"] = zeroTime
	}
	w.WriteHeader(status)
	return nil
}

// TooLarge is the refusal of a body above the cap. The rest of the body is not
// read: the connection cannot be used again.
func (w *Response) TooLarge() error {
	w.Header().Set("Connection", "close")
	return errTooLong()
}

// setJSONType sets Content-Type and Cache-Control of a JSON answer unless the
// endpoint has set others.
func (w *Response) setJSONType(h http.Header) {
	if _, set := h["Content-Type"]; !set {
		switch {
		case w.jsonp() != "":
			h["Content-Type"] = typeScript
		case wantsText(w.request):
			h["Content-Type"] = typeText
		default:
			h["Content-Type"] = typeJSON
		}
	}
	if _, set := h["Cache-Control"]; !set {
		h["Cache-Control"] = MustRevalidate
	}
}

// jsonp returns the callback of a JSONP request, empty when there is none, when
// the server does not allow it or when it is no name.
func (w *Response) jsonp() string {
	if !w.set.allowJSONP {
		return ""
	}
	callback, _ := w.target.QueryValue("callback")
	if !plainCallback(callback) {
		return ""
	}
	return callback
}

// checkCallback refuses a JSONP callback that is no name: it becomes part of a
// script.
func (w *Response) checkCallback() error {
	if callback, _ := w.target.QueryValue("callback"); w.set.allowJSONP && !plainCallback(callback) {
		return fault.New(fault.BadRequest, "invalid_callback")
	}
	return nil
}

func plainCallback(s string) bool {
	for i := range len(s) {
		b := s[i]
		if (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && strings.IndexByte("._[]", b) < 0 {
			return false
		}
	}
	return true
}

func wrapCallback(callback string, body []byte) []byte {
	out := make([]byte, 0, len(callback)+len(body)+20)
	out = append(out, "/* CouchDB */"...)
	out = append(out, callback...)
	out = append(out, '(')
	out = append(out, body...)
	return append(out, ");"...)
}

// commonHeaders sets what every answer has, before the handler runs.
func (w *Response) commonHeaders(requestID string) {
	h := w.Header()
	h["Server"] = w.set.serverHeader
	h["X-Couch-Request-ID"] = []string{requestID}
	if w.config.Chttpd.XFrame.Enable {
		h["X-Frame-Options"] = []string{w.frameOptions()}
	}
}

// frameOptions is the value of X-Frame-Options: who may show this server's
// pages in a frame.
func (w *Response) frameOptions() string {
	x := &w.config.Chttpd.XFrame
	if x.SameOrigin {
		return "SAMEORIGIN"
	}
	base := baseURL(w.request, w.config)
	if len(x.Hosts) == 1 && x.Hosts[0] == "*" || slices.Contains(x.Hosts, base) {
		return "ALLOW-FROM " + base
	}
	return "DENY"
}

// finishHeaders sets and removes headers at the moment the status is known.
func (w *Response) finishHeaders(status int) {
	w.body.text, w.body.read = nil, false
	h := w.Header()
	if ms := w.body.spent.Milliseconds(); ms == 0 {
		h["X-CouchDB-Body-Time"] = zeroTime
	} else {
		h["X-CouchDB-Body-Time"] = []string{strconv.FormatInt(ms, 10)}
	}
	if w.set.cors != nil {
		h["Vary"] = append(h["Vary"], "Origin") // with or without one, or a cache would mix them up
		w.set.cors.expose(w, h)
	}
	if p := w.request.Header["Prefer"]; len(p) != 0 && p[0] == "return=minimal" && status < 400 {
		w.minimalHeaders(h)
	}
}

// minimalHeaders keeps only the headers of [chttpd] prefer_minimal.
func (w *Response) minimalHeaders(h http.Header) {
	for name := range h {
		if !w.set.preferMinimal[strings.ToLower(name)] {
			delete(h, name)
		}
	}
	h["Date"] = nil // net/http would add it
}

// SetETag sets the ETag header: the value without its quotes.
func (w *Response) SetETag(value string) { w.Header()["ETag"] = []string{`"` + value + `"`} }

// ETagMatches reports whether the If-None-Match of a request lists that entity
// tag (given with its quotes). Items are separated by commas, a W/ prefix is
// dropped, and "*" never matches (api.md 1.4).
func ETagMatches(r *http.Request, etag string) bool {
	header := r.Header.Get("If-None-Match")
	if header == "" {
		return false
	}
	for item := range strings.SplitSeq(header, ",") {
		if strings.TrimPrefix(strings.TrimSpace(item), "W/") == etag {
			return true
		}
	}
	return false
}

// HashOf returns an opaque entity tag for a text.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
