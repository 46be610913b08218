package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"divan/httpapi/conns"
	"divan/httpapi/core"
)

// This file makes one kind of answer of what net/http refuses by itself,
// before it asks a handler: a request that cannot be parsed, too large a
// header, an HTTP version or a transfer coding that is not known. It writes
// them as text; here they become JSON with the headers of every other answer.
// One of them is of CouchDB's API: an escape in the path that is none (api.md
// section 1.1).

// Attach makes srv serve the API, and returns the listener that srv is to serve on. TLS
// goes below: l is then the listener that tls.NewListener has made. HTTP/2 is not spoken
// on it. The handshake of a TLS connection has as long as the header of a request,
// srv.ReadHeaderTimeout.
func (a *API) Attach(srv *http.Server, l net.Listener) net.Listener {
	srv.Handler = a
	srv.ConnState = connState
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if a, ok := c.(interface{ limited() *conns.Conn }); ok {
			ctx = conns.NewContext(ctx, a.limited())
		}
		return ctx
	}
	return &listener{Listener: l, api: a, handshake: srv.ReadHeaderTimeout}
}

type listener struct {
	net.Listener
	api       *API
	handshake time.Duration
}

// Accept implements net.Listener. Connections that are too many are told so.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		secret, isSecret := inner.(*tls.Conn)
		limited, ok := l.api.Connections.Admit(inner)
		switch {
		case ok && isSecret:
			return &tlsConn{conn: conn{Conn: limited, api: l.api, begins: true}, tls: secret, timeout: l.handshake}, nil
		case ok:
			return &conn{Conn: limited, api: l.api, begins: true}, nil
		case !isSecret:
			// The buffer of the socket is empty: nothing is waited for.
			_ = writeRefusal(inner, l.api.ServerHeader(), core.NewRequestID(), http.StatusServiceUnavailable, core.TextOverload)
		}
		_ = inner.Close() // it was refused
	}
}

// conn is a connection that replaces net/http's own refusals. Its fields need
// no lock: those about reading change with the first bytes of a request only,
// when no handler runs (the read that net/http keeps going beside a handler is
// of one byte), and one goroutine at a time writes.
type conn struct {
	*conns.Conn
	api *API
	// begins says that nothing was written since the connection was new or idle: the next
	// write begins an answer. A refusal may be looked for only there: in a document the same
	// bytes are content.
	begins bool
	// read says that something was read since then, and badEscape what the
	// request line in it was like.
	read, badEscape bool
}

// idle gets ready for the next request.
func (c *conn) idle() { c.begins, c.read, c.badEscape = true, false, false }

// connState is the http.Server's hook: it is called between two requests.
func connState(c net.Conn, state http.ConnState) {
	if i, ok := c.(interface{ idle() }); ok && state == http.StateIdle {
		i.idle()
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if len(p) > 1 && !c.read && n > 0 {
		c.read, c.badEscape = true, badEscape(p[:n])
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	begins := c.begins
	c.begins = false
	if begins {
		if status, reason, ok := parseRefusal(p); ok {
			return len(p), c.refuse(status, reason)
		}
	}
	return c.Conn.Write(p)
}

func (c *conn) limited() *conns.Conn { return c.Conn }

// refuse writes the answer to a request that no handler has seen.
func (c *conn) refuse(status int, reason string) error {
	if reason == "" {
		reason = "malformed request"
		if c.badEscape {
			reason = "invalid_url_encoding"
		}
	}
	id := core.NewRequestID()
	c.api.Deps.Logger.Info("malformed request", zap.String("request", id), zap.String("peer", c.RemoteAddr().String()),
		zap.Int("status", status), zap.String("reason", reason))
	return writeRefusal(c.Conn, c.api.ServerHeader(), id, status, reason)
}

func writeRefusal(w io.Writer, server, id string, status int, reason string) error {
	text := http.StatusText(status)
	body := core.Failure{Name: strings.ReplaceAll(strings.ToLower(text), " ", "_"), Reason: reason}.AppendJSON(nil)
	answer := "HTTP/1.1 " + strconv.Itoa(status) + " " + text +
		"\r\nServer: " + server + "\r\nX-Couch-Request-ID: " + id +
		"\r\nDate: " + time.Now().UTC().Format(http.TimeFormat) +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)+1) +
		"\r\nCache-Control: must-revalidate\r\nConnection: close\r\n\r\n" + string(body) + "\n"
	_, err := io.WriteString(w, answer)
	return err
}

// What net/http writes itself: a status line, these headers and a body of
// text. Answers of handlers have other headers in front of them.
const (
	statusPrefix   = "HTTP/1.1 "
	refusalHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	expectHeaders  = "\r\nConnection: close\r\nDate: " // and no body: an Expect header that is not known
	maxRefusal     = 300                               // bytes, more than any of them has
)

// parseRefusal reports whether the first bytes of an answer are a refusal of
// net/http, its status, and the reason when net/http gives one.
func parseRefusal(p []byte) (status int, reason string, ok bool) {
	if len(p) > maxRefusal || len(p) < len(statusPrefix)+3 || p[len(statusPrefix)] < '4' || !bytes.HasPrefix(p, []byte(statusPrefix)) {
		return 0, "", false
	}
	line, rest, _ := strings.Cut(string(p[len(statusPrefix):]), "\r\n")
	status, err := strconv.Atoi(line[:3])
	if err != nil || http.StatusText(status) == "" {
		return 0, "", false
	}
	body, ok := strings.CutPrefix("\r\n"+rest, refusalHeaders)
	switch {
	case !ok:
		expect := status == http.StatusExpectationFailed && strings.HasPrefix("\r\n"+rest, expectHeaders)
		return status, "the expectation is not known", expect
	case body == "400 Bad Request":
		return status, "", true
	case status == http.StatusRequestHeaderFieldsTooLarge:
		return status, "the header of the request is too large", true
	}
	if _, why, told := strings.Cut(body, ": "); told {
		body = why
	}
	return status, body, true
}

// badEscape reports whether the path of the request line that a request begins
// with has a "%" that is not followed by two hexadecimal digits. The path may
// be cut off.
func badEscape(request []byte) bool {
	if bytes.IndexByte(request, '%') < 0 {
		return false
	}
	line, _, _ := bytes.Cut(request, []byte("\n"))
	_, target, _ := bytes.Cut(line, []byte(" "))
	if end := bytes.IndexAny(target, " ?"); end >= 0 {
		target = target[:end]
	} else if at := bytes.LastIndexByte(target, '%'); at >= len(target)-2 && at >= 0 {
		target = target[:at] // the rest of the escape may come
	}
	_, err := core.Unescape(string(target), false)
	return err != nil
}

// tlsConn is a conn with TLS below.
type tlsConn struct {
	conn
	tls     *tls.Conn
	timeout time.Duration
}

// ConnectionState shakes hands first. net/http asks for it, once, before it
// reads the first request; for a plain *tls.Conn it would do the same.
func (c *tlsConn) ConnectionState() tls.ConnectionState {
	err := c.shakeHands()
	if err == nil {
		return c.tls.ConnectionState()
	}
	c.api.Deps.Logger.Info("TLS handshake failed", zap.String("peer", c.RemoteAddr().String()), zap.Error(err))
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
		_ = writeRefusal(plain.Conn, c.api.ServerHeader(), core.NewRequestID(), http.StatusBadRequest,
			"Client sent an HTTP request to an HTTPS server.")
		_ = plain.Conn.Close() // and with that the attempt is over, delivered or not
	}
	return tls.ConnectionState{}
}

func (c *tlsConn) shakeHands() error {
	if c.timeout > 0 {
		if err := c.SetDeadline(time.Now().Add(c.timeout)); err != nil {
			return err
		}
	}
	c.BeginWait()
	if _, err := c.tls.Read(nil); err != nil { // nothing is read, but the handshake is done
		return err
	}
	return c.SetDeadline(time.Time{})
}

// looksLikeHTTP reports whether the first bytes of a connection begin a
// request of HTTP.
func looksLikeHTTP(head [5]byte) bool {
	switch string(head[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "DELET", "COPY ", "OPTIO":
		return true
	}
	return false
}
