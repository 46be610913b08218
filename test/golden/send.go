package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is the answer of a server.
type answer struct {
	status  int
	headers map[string]string // names in lower case, the last of each
	body    []byte
}

// urlSafe are the bytes of a path that are sent as they are.
const urlSafe = "%/?&=+:;,@!$'()*~#[]-._"

func quotePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if isWord(c) || strings.IndexByte(urlSafe, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var byteEscape = regexp.MustCompile(`\\x([0-9a-fA-F]{2})`)

// requestBody returns the bytes to send for the step.
func requestBody(s *step, n *names) ([]byte, error) {
	text, err := n.fill(s.body, same)
	if err != nil {
		return nil, err
	}
	if s.has("crlf") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if s.has("unescape") {
		text = byteEscape.ReplaceAllStringFunc(text, func(m string) string {
			c, _ := strconv.ParseUint(m[2:], 16, 8) // the pattern allows two hexadecimal digits only
			return string([]byte{byte(c)})
		})
	}
	if !s.has("gzip") {
		return []byte(text), nil
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// requestHeaderLines returns the header lines of the step. One without a value is
// not sent, nor is the default in its place.
func requestHeaderLines(s *step, n *names, base *url.URL) ([]header, error) {
	var out []header
	seen := func(name string) bool {
		return slices.ContainsFunc(s.headers, func(h header) bool { return strings.EqualFold(h.name, name) })
	}
	for _, h := range s.headers {
		v, err := n.fill(h.value, same)
		if err != nil {
			return nil, err
		}
		if v != "" {
			out = append(out, header{h.name, v})
		}
	}
	auth, ok := s.opts["auth"]
	if !ok || auth == "admin" {
		password, _ := base.User.Password()
		auth = base.User.Username() + ":" + password
	}
	if auth != "none" && !seen("Authorization") {
		filled, err := n.fill(auth, same)
		if err != nil {
			return nil, err
		}
		out = append(out, header{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(filled))})
	}
	if s.body != "" && !seen("Content-Type") {
		out = append(out, header{"Content-Type", "application/json"})
	}
	if !seen("Accept") {
		out = append(out, header{"Accept", "application/json"})
	}
	return out, nil
}

// send makes the request of the step and reads its answer. It writes the
// request by itself, because paths and headers must reach the server as they
// stand in the transcript.
func send(ctx context.Context, base *url.URL, s *step, n *names) (*answer, error) {
	path, err := n.fill(s.path, same)
	if err != nil {
		return nil, err
	}
	body, err := requestBody(s, n)
	if err != nil {
		return nil, err
	}
	headers, err := requestHeaderLines(s, n, base)
	if err != nil {
		return nil, err
	}
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\n", s.method, quotePath(path), base.Host)
	if slices.ContainsFunc(headers, func(h header) bool { return strings.EqualFold(h.name, "Accept-Encoding") }) {
		head.Reset()
		fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n", s.method, quotePath(path), base.Host)
	}
	for _, h := range headers {
		fmt.Fprintf(&head, "%s: %s\r\n", h.name, h.value)
	}
	head.Write(framing(s, body))

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", base.Host)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // everything that counts was read before
	timeout := time.Duration(s.seconds("timeout", 60) * float64(time.Second))
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(head.Bytes()); err != nil && !errors.Is(err, net.ErrClosed) {
		// the server may answer before it has read everything: look at the answer
		if a, readErr := receive(conn, s); readErr == nil {
			return a, nil
		}
		return nil, err
	}
	return receive(conn, s)
}

// framing returns the end of the head and the framed body.
func framing(s *step, body []byte) []byte {
	var b bytes.Buffer
	switch {
	case s.has("chunked"):
		size := int(s.seconds("chunked", 16))
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for chunk := range slices.Chunk(body, size) {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(chunk), chunk)
		}
		b.WriteString("0\r\n\r\n")
	case s.body != "":
		given := slices.ContainsFunc(s.headers, func(h header) bool { return strings.EqualFold(h.name, "Content-Length") })
		if !given {
			fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
		}
		b.WriteString("\r\n")
		b.Write(body)
	case s.method == http.MethodPut || s.method == http.MethodPost || s.method == http.MethodPatch:
		b.WriteString("Content-Length: 0\r\n\r\n")
	default:
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

func receive(conn net.Conn, s *step) (*answer, error) {
	in := bufio.NewReader(conn)
	var resp *http.Response
	for {
		var err error
		resp, err = http.ReadResponse(in, &http.Request{Method: s.method})
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		if resp.StatusCode >= 200 {
			break
		}
		if err := resp.Body.Close(); err != nil {
			return nil, err
		}
	}
	defer func() { _ = resp.Body.Close() }() // the body was read to the end or cut on purpose
	a := &answer{status: resp.StatusCode, headers: map[string]string{}}
	for name, values := range resp.Header {
		a.headers[strings.ToLower(name)] = values[len(values)-1]
	}
	if s.has("cut") {
		if err := conn.SetReadDeadline(time.Now().Add(time.Duration(s.seconds("cut", 1) * float64(time.Second)))); err != nil {
			return nil, err
		}
		a.body, _ = io.ReadAll(resp.Body) // ends with the time-out that was just set
		return a, nil
	}
	var err error
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	if a.headers["content-encoding"] == "gzip" && !s.has("keep-encoding") && len(a.body) > 0 {
		a.body, err = gunzip(a.body)
	}
	return a, err
}

func gunzip(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
