package httpapi

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/httpapi/conns"
)

// attached serves an API on a listener of its own and returns its address.
// With a certificate it speaks TLS.
func attached(t *testing.T, a *API, handler http.Handler, certificates ...tls.Certificate) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if len(certificates) > 0 {
		l = tls.NewListener(l, &tls.Config{Certificates: certificates})
	}
	srv := &http.Server{ReadHeaderTimeout: 10 * time.Second}
	l = a.Attach(srv, l)
	if handler != nil {
		srv.Handler = handler
	}
	var open sync.WaitGroup // connections: net/http keeps one for a while after some refusals
	between := srv.ConnState
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		between(c, state)
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		case http.StateActive, http.StateIdle, http.StateHijacked: // still open
		}
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		open.Wait()
	})
	return address
}

func dial(t *testing.T, address string, c *tls.Config) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	if c != nil {
		conn, err = tls.Dial("tcp", address, c)
	} else {
		conn, err = net.Dial("tcp", address)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// refusals are requests that net/http refuses by itself.
func refusals() []struct{ name, request, want string } {
	const bad = `{"error":"bad_request","reason":"`
	return []struct{ name, request, want string }{
		{"good", "GET /_up HTTP/1.1\r\nHost: x\r\n\r\n", `200 {"status":"ok","seeds":{}}`},
		{"bad escape", "GET /_up%zz HTTP/1.1\r\nHost: x\r\n\r\n", "400 " + bad + `invalid_url_encoding"}`},
		{"escape cut off", "GET /_up%4 HTTP/1.1\r\nHost: x\r\n\r\n", "400 " + bad + `invalid_url_encoding"}`},
		{
			"bad escape before a long query", "GET /_up%zz?keys=" + strings.Repeat("x", 9000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
			"400 " + bad + `invalid_url_encoding"}`,
		},
		{"bad header", "GET /_up HTTP/1.1\r\nBad Header\r\nHost: x\r\n\r\n", "400 " + bad + `malformed request"}`},
		{"good escape, bad header", "GET /%5fup HTTP/1.1\r\nBad Header\r\n\r\n", "400 " + bad + `malformed request"}`},
		{"no host", "GET /_up HTTP/1.1\r\n\r\n", "400 " + bad + `missing required Host header"}`},
		{"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400 " + bad + `malformed request"}`},
		{"version", "GET /_up HTTP/3.0\r\nHost: x\r\n\r\n", `505 {"error":"http_version_not_supported","reason":"unsupported protocol version"}`},
		{
			"transfer coding", "POST /_up HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: squeezed\r\n\r\n",
			`501 {"error":"not_implemented","reason":"Unsupported transfer encoding"}`,
		},
		{
			"expectation", "POST /_up HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: miracle\r\n\r\n",
			`417 {"error":"expectation_failed","reason":"the expectation is not known"}`,
		},
		{
			"large header", "GET /_up HTTP/1.1\r\nHost: x\r\nX-Large: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
			`431 {"error":"request_header_fields_too_large","reason":"the header of the request is too large"}`,
		},
	}
}

// TestRefusals holds this package to what net/http writes when it refuses a
// request by itself: with another Go version that may be another text.
func TestRefusals(t *testing.T) {
	secret := httptest.NewUnstartedServer(nil)
	secret.StartTLS()
	defer secret.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secret.Certificate())
	a := frontAPI(t, config.Values{"chttpd": {"server_header_versions": "false"}})
	plain := attached(t, a, nil)
	hidden := attached(t, a, nil, secret.TLS.Certificates[0])
	for _, tc := range refusals() {
		t.Run(tc.name, func(t *testing.T) {
			refused(t, dial(t, plain, nil), tc.request, tc.want)
		})
		t.Run("TLS "+tc.name, func(t *testing.T) {
			refused(t, dial(t, hidden, &tls.Config{RootCAs: roots, ServerName: "example.com"}), tc.request, tc.want)
		})
	}
	t.Run("HTTP on the TLS port", func(t *testing.T) {
		refused(t, dial(t, hidden, nil), "GET /_up HTTP/1.1\r\nHost: x\r\n\r\n",
			`400 {"error":"bad_request","reason":"Client sent an HTTP request to an HTTPS server."}`)
	})
}

// refused sends a request and compares the answer, which has to have the
// headers that every answer has.
func refused(t *testing.T, conn net.Conn, request, want string) {
	t.Helper()
	go func() { _, _ = io.WriteString(conn, request) }() // the server may hang up before it has read all
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if got := res.Status[:4] + strings.TrimSpace(string(body)); got != want || err != nil {
		t.Errorf("got %s, want %s (%v)", got, want, err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "must-revalidate", "Server": "CouchDB",
	} {
		if got := res.Header.Get(name); got != value && (res.StatusCode != http.StatusOK || name != "Cache-Control") {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{10}$`).MatchString(res.Header.Get("X-Couch-Request-ID")) || res.ContentLength != int64(len(body)) {
		t.Errorf("request id %q, length %d", res.Header.Get("X-Couch-Request-ID"), res.ContentLength)
	}
}

// TestRefusalOnUsedConnection refuses the second request of a connection.
func TestRefusalOnUsedConnection(t *testing.T) {
	conn := dial(t, attached(t, frontAPI(t, nil), nil), nil)
	in := bufio.NewReader(conn)
	for i, target := range []string{"/_up", "/_up", "/_up%zz"} {
		if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if want := i == 2; strings.Contains(string(body), "invalid_url_encoding") != want || err != nil {
			t.Errorf("%s: %s, %v", target, body, err)
		}
	}
}

// TestBytesOfHandlersStay sends, as content, the very bytes of a refusal, in a
// write of their own.
func TestBytesOfHandlersStay(t *testing.T) {
	const text = "HTTP/1.1 400 Bad Request" + refusalHeaders + "400 Bad Request"
	a := frontAPI(t, nil)
	address := attached(t, a, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, text)
	}))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != text {
		t.Errorf("got %q, %v", body, err)
	}
}

// TestTLSIsSeen looks whether handlers learn that the connection is secret.
func TestTLSIsSeen(t *testing.T) {
	secret := httptest.NewUnstartedServer(nil)
	secret.StartTLS()
	defer secret.Close()
	address := attached(t, frontAPI(t, nil), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || !r.TLS.HandshakeComplete {
			w.WriteHeader(http.StatusTeapot)
		}
	}), secret.TLS.Certificates[0])
	client := secret.Client()
	defer client.CloseIdleConnections()
	res, err := client.Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}

func FuzzBadEscape(f *testing.F) {
	for _, c := range refusals() {
		f.Add([]byte(c.request[:min(len(c.request), 200)]))
	}
	f.Fuzz(func(_ *testing.T, request []byte) {
		badEscape(request)
		parseRefusal(request)
	})
}

func BenchmarkAttachedConnection(b *testing.B) {
	request := []byte("GET /db/" + strings.Repeat("d", 40) + "?rev=1-abc HTTP/1.1\r\n" + strings.Repeat("Header: value\r\n", 20) + "\r\n")
	answer := []byte("HTTP/1.1 200 OK\r\nCache-Control: must-revalidate\r\nContent-Length: 2\r\n\r\n{}")
	inner, _ := conns.New(conns.Options{}).Admit(feed{request: request})
	c := conn{Conn: inner}
	buf := make([]byte, 4096)
	for b.Loop() {
		c.idle()
		_, _ = c.Read(buf)
		_, _ = c.Write(answer)
	}
}

// feed is a connection on which the same request comes in again and again.
type feed struct {
	net.Conn
	request []byte
}

func (f feed) Read(p []byte) (int, error)  { return copy(p, f.request), nil }
func (f feed) Write(p []byte) (int, error) { return len(p), nil }

func (f feed) RemoteAddr() net.Addr               { return nil }
func (f feed) SetWriteDeadline(_ time.Time) error { return nil }
