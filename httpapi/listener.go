package httpapi

import (
	"bytes"
	"net"
	"strconv"
)

// refusedByHTTP is what net/http itself writes, without asking a handler, when
// a request cannot be parsed. One cause is of CouchDB's API: an escape in the
// path that is none, which has to be told in JSON (api.md section 1.1).
const refusedByHTTP = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

// Listener wraps a listener of plain connections so that requests which
// net/http refuses by itself get an answer in JSON as every other one. It is
// not for connections that are to be known as TLS: for those wrap nothing.
func Listener(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection that replaces net/http's own refusal.
type conn struct {
	net.Conn
	// last is where the latest bytes were read to: net/http's buffer, which
	// holds the request that it is about to refuse. It is set and looked at on
	// the goroutine that serves the connection only; the reads of net/http that
	// run in the background are of one byte.
	last []byte
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if len(p) > 1 {
		c.last = p[:n]
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) != len(refusedByHTTP) || string(p) != refusedByHTTP {
		return c.Conn.Write(p)
	}
	reason := "The request is not well-formed."
	if badEscape(c.last) {
		reason = "invalid_url_encoding"
	}
	body := failure{name: "bad_request", reason: reason}.appendJSON(nil)
	answer := "HTTP/1.1 400 Bad Request\r\nServer: CouchDB\r\nContent-Type: application/json\r\nCache-Control: must-revalidate\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)+1) + "\r\nConnection: close\r\n\r\n" + string(body) + "\n"
	if _, err := c.Conn.Write([]byte(answer)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// badEscape reports whether the target of a request line has a "%" that is not
// followed by two hexadecimal digits.
func badEscape(request []byte) bool {
	line, _, _ := bytes.Cut(request, []byte("\n"))
	_, target, _ := bytes.Cut(line, []byte(" "))
	target, _, _ = bytes.Cut(target, []byte(" "))
	_, err := decode(string(target), false)
	return err != nil
}
