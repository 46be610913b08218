package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// crlf makes wire text of lines.
func crlf(lines ...string) string { return strings.Join(lines, "\r\n") }

// reading is what became of an answer.
type reading struct {
	status int
	etag   string
	body   string
	closes bool
	err    error
}

// readIn feeds the text in pieces of the sizes, the last one again and again,
// and then ends the connection.
func readIn(text []byte, sizes []byte) reading {
	a := answer{keep: 1 << 20}
	a.reset()
	var err error
	for i := 0; len(text) > 0 && err == nil && !a.done(); i++ {
		n := len(text)
		if len(sizes) > 0 {
			n = min(n, 1+int(sizes[min(i, len(sizes)-1)]))
		}
		piece := bytes.Clone(text[:n])
		_, err = a.feed(piece)
		clear(piece) // what an answer keeps it must have copied
		text = text[n:]
	}
	if err == nil && !a.done() {
		err = a.end()
	}
	return reading{a.status, string(a.etag), string(a.body), a.closes, err}
}

var answers = []struct {
	name, text string
	want       reading
}{
	{"length", crlf("HTTP/1.1 200 OK", "Content-Length: 2", "ETag: \"1-a\"", "", "{}"), reading{200, `"1-a"`, "{}", false, nil}},
	{"chunked", crlf("HTTP/1.1 201 Created", "transfer-encoding: CHUNKED", "", "3", "abc", "0A;x=y", "0123456789", "0", "", ""), reading{201, "", "abc0123456789", false, nil}},
	{"trailers", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "1", "a", "0", "X: y", "Z: 1", "", ""), reading{200, "", "a", false, nil}},
	{"chunked beats length", crlf("HTTP/1.1 200 OK", "Content-Length: 9", "Transfer-Encoding: chunked", "", "0", "", ""), reading{200, "", "", false, nil}},
	{"close", crlf("HTTP/1.1 200 OK", "Content-Length: 1", "Connection: x, Close", "", "a"), reading{200, "", "a", true, nil}},
	{"until the end", crlf("HTTP/1.1 200 OK", "", "all of it"), reading{200, "", "all of it", true, nil}},
	{"old", crlf("HTTP/1.0 200 OK", "Content-Length: 1", "", "a"), reading{200, "", "a", true, nil}},
	{"old and kept", crlf("HTTP/1.0 200 OK", "Content-Length: 1", "Connection: Keep-Alive", "", "a"), reading{200, "", "a", false, nil}},
	{"bare line ends", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", reading{200, "", "a", false, nil}},
	{"interim", crlf("HTTP/1.1 100 Continue", "ETag: x", "", "HTTP/1.1 404 Object Not Found", "Content-Length: 0", "", ""), reading{404, "", "", false, nil}},
	{"no content", crlf("HTTP/1.1 204 No Content", "", ""), reading{204, "", "", false, nil}},
	{"not modified", crlf("HTTP/1.1 304", "Content-Length: 10", "", ""), reading{304, "", "", false, nil}},

	{"no answer", "", reading{err: io.ErrUnexpectedEOF}},
	{"truncated header", "HTTP/1.1 200 OK\r\nContent-", reading{err: io.ErrUnexpectedEOF}},
	{"truncated body", crlf("HTTP/1.1 200 OK", "Content-Length: 2", "", "a"), reading{err: io.ErrUnexpectedEOF}},
	{"truncated chunk", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "2", "a"), reading{err: io.ErrUnexpectedEOF}},
	{"no last chunk", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "1", "a", ""), reading{err: io.ErrUnexpectedEOF}},
	{"other protocol", "SSH-2.0-OpenSSH_9.9\r\n", reading{err: errMalformed}},
	{"no number", "HTTP/1.1 2x0 OK\r\n", reading{err: errMalformed}},
	{"switching", "HTTP/1.1 101 Switching Protocols\r\n\r\n", reading{err: errMalformed}},
	{"no colon", crlf("HTTP/1.1 200 OK", "Content-Length", ""), reading{err: errMalformed}},
	{"folded", crlf("HTTP/1.1 200 OK", "ETag: 1", " 2: 3", ""), reading{err: errMalformed}},
	{"negative length", crlf("HTTP/1.1 200 OK", "Content-Length: -1", ""), reading{err: errMalformed}},
	{"two lengths", crlf("HTTP/1.1 200 OK", "Content-Length: 1", "Content-Length: 2", ""), reading{err: errMalformed}},
	{"great length", crlf("HTTP/1.1 200 OK", "Content-Length: 9999999999999999999", ""), reading{err: errMalformed}},
	{"compressed", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: gzip, chunked", ""), reading{err: errMalformed}},
	{"no chunk size", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", ";", ""), reading{err: errMalformed}},
	{"bad chunk size", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "g", ""), reading{err: errMalformed}},
	{"great chunk size", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "ffffffffffffffff", ""), reading{err: errMalformed}},
	{"text after a chunk", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "", "1", "ab", ""), reading{err: errMalformed}},
	{"endless line", "HTTP/1.1 200 " + strings.Repeat("x", maxLines), reading{err: errMalformed}},
	{"endless header", "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", maxLines/6), reading{err: errMalformed}},
}

func TestAnswer(t *testing.T) {
	for _, c := range answers {
		for _, sizes := range [][]byte{nil, {0}, {2}, {15, 0, 40}} {
			got := readIn([]byte(c.text), sizes)
			if !errors.Is(got.err, c.want.err) {
				t.Errorf("%s in pieces of %v: error %v, want %v", c.name, sizes, got.err, c.want.err)
			}
			if got.err == nil && got != c.want {
				t.Errorf("%s in pieces of %v: %+v, want %+v", c.name, sizes, got, c.want)
			}
		}
	}
}

func TestAnswerIsUsedAgain(t *testing.T) {
	a := answer{keep: 3}
	for i := range 3 {
		a.reset()
		text := crlf("HTTP/1.1 200 OK", "Content-Length: 5", fmt.Sprintf("ETag: %d", i), "", "abcde", "rest")
		rest, err := a.feed([]byte(text))
		if err != nil || !a.done() || string(rest) != "\r\nrest" || string(a.body) != "abc" || string(a.etag) != fmt.Sprint(i) {
			t.Errorf("rest %q, error %v, done %t, body %q, etag %q", rest, err, a.done(), a.body, a.etag)
		}
	}
}

// byNetHTTP reads an answer with net/http.
func byNetHTTP(text []byte) (reading, []string) {
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return reading{err: err}, nil
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode >= 200 {
			return reading{res.StatusCode, res.Header.Get("ETag"), string(body), res.Close, err}, res.Header["Etag"]
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	for _, c := range answers {
		if len(c.text) < 1000 {
			f.Add([]byte(c.text), []byte{3, 0, 20})
		}
	}
	f.Fuzz(func(t *testing.T, text, sizes []byte) {
		got, whole := readIn(text, sizes), readIn(text, nil)
		if (got.err == nil) != (whole.err == nil) {
			t.Fatalf("in pieces %v, at once %v", got.err, whole.err)
		}
		if got.err != nil {
			return
		}
		if got != whole {
			t.Fatalf("in pieces %+v, at once %+v", got, whole)
		}
		want, etags := byNetHTTP(text)
		if want.err != nil {
			return
		}
		if len(etags) > 1 {
			got.etag = want.etag // net/http takes the first, even if it is empty
		}
		if got != want {
			t.Fatalf("got %+v, net/http has %+v", got, want)
		}
	})
}
