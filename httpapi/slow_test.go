package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"divan/cluster/config"
	"divan/httpapi/apitest"
)

// dripping is a body of so many bytes per tenth of a second.
type dripping struct {
	left, per int
}

// Read implements io.Reader.
func (d *dripping) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	<-time.After(100 * time.Millisecond)
	n := min(d.left, d.per, len(p))
	copy(p, strings.Repeat("x", n))
	d.left -= n
	return n, nil
}

// TestRateOfBodies: after the grace a body has to come with a least rate; what it
// was faster before counts.
func TestRateOfBodies(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"body_grace": "1", "min_body_rate": "10000"}})
	s.text(201, "PUT", "/db", nil)
	s.text(201, "PUT", "/db/steady/a", &dripping{left: 30_000, per: 1_500}, "Content-Type: image/png")
	burst := io.MultiReader(strings.NewReader(strings.Repeat("x", 100_000)), &dripping{left: 20, per: 1})
	s.text(201, "PUT", "/db/burst/a", burst, "Content-Type: image/png")
	for _, request := range []string{"PUT /db/slow/a", "POST /db/_bulk_docs"} {
		began := time.Now()
		method, path, _ := strings.Cut(request, " ")
		res := s.do(method, path, &dripping{left: 30_000, per: 100}, "Content-Type: application/json")
		got, _ := io.ReadAll(res.Body)
		if took := time.Since(began); res.StatusCode != http.StatusInternalServerError || !strings.HasPrefix(string(got), `{"error":"timeout"`) || took > 5*time.Second {
			t.Errorf("%s: %d %s after %v", request, res.StatusCode, got, took)
		}
	}
}

// TestBodiesOfNobody: who is not known sends a small body, at once.
func TestBodiesOfNobody(t *testing.T) {
	s := newSite(t, config.Values{"chttpd": {"body_grace": "1"}})
	for name, tc := range map[string]struct{ request, want string }{
		"slow login": {"POST /_session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{", "500 "},
		"large login": {
			"POST /_session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n{", "413 ",
		},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		apitest.Must(t, err)
		_, err = io.WriteString(conn, tc.request)
		apitest.Must(t, err)
		began := time.Now()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		apitest.Must(t, err)
		if took := time.Since(began); !strings.HasPrefix(res.Status, tc.want) || took > 5*time.Second {
			t.Errorf("%s: %s after %v, want %s", name, res.Status, took, tc.want)
		}
		apitest.Must(t, conn.Close())
	}
}
