package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestListener holds this package to what net/http writes when it refuses a
// request by itself: with another Go version that may be another text.
func TestListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: frontAPI(t, nil)}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(Listener(l)) }()
	defer func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		<-served
	}()
	for _, tc := range []struct{ line, want string }{
		{"GET /_up HTTP/1.1", `{"status":"ok","seeds":{}}`},
		{"GET /_up%zz HTTP/1.1", `{"error":"bad_request","reason":"invalid_url_encoding"}`},
		{"GET /_up%4 HTTP/1.1", `{"error":"bad_request","reason":"invalid_url_encoding"}`},
		{"GET /_up HTTP/1.1\r\nBad Header", `{"error":"bad_request","reason":"The request is not well-formed."}`},
	} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, tc.line+"\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", tc.line, err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || strings.TrimSpace(string(body)) != tc.want || res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %q, %v", tc.line, res.StatusCode, res.Header, body, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
