package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"divan/cluster/config"
	"divan/httpapi/apitest"
	"divan/httpapi/core"
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

// piped is a listener of one connection.
type piped struct {
	conns chan net.Conn
	net.Listener
}

// Accept implements net.Listener.
func (p piped) Accept() (net.Conn, error) {
	if c, ok := <-p.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (piped) Close() error { return nil }

// TestRestOfABody: an answer that needs nothing of a body does not wait for the rest of
// it for ever.
func TestRestOfABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		l := piped{conns: make(chan net.Conn, 1)}
		l.conns <- server
		srv := &http.Server{ReadHeaderTimeout: time.Minute}
		on := frontAPI(t, nil).Attach(srv, l)
		served := make(chan error)
		go func() { served <- srv.Serve(on) }()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { _ = client.Close() })
		go func() { _, _ = io.WriteString(client, "PUT /_up HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{") }()
		res, err := http.ReadResponse(bufio.NewReader(client), nil)
		if took := time.Since(began); err != nil || res.StatusCode != http.StatusMethodNotAllowed || took > 15*time.Second {
			t.Errorf("after %v: %v, %v", took, res, err)
		}
		_ = client.Close()
		close(l.conns)
		if err := <-served; err == nil {
			t.Error("it was served without a listener")
		}
		apitest.Must(t, srv.Close())
	})
}

// said is what a raw connection is told.
func said(t *testing.T, address, request string) (conn net.Conn, answer func() (*http.Response, error)) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	apitest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	apitest.Must(t, err)
	return conn, func() (*http.Response, error) { return http.ReadResponse(bufio.NewReader(conn), nil) }
}

// asAdminTo begins a request of the administrator.
func asAdminTo(request string) string {
	return request + " HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\n"
}

// TestBusyNodeTellsHowItIs: when all connections are at work, or as many requests under
// way as may be, a further client is refused for a while, unless it asks how the node is.
func TestBusyNodeTellsHowItIs(t *testing.T) {
	for name, a := range map[string]*API{
		"connections": nodeAs(t, "divan@127.0.0.1", nil, func(d *core.Deps) { d.Limits.Connections = 4 }),
		"requests":    nodeAs(t, "divan@127.0.0.1", config.Values{"chttpd": {"max_connections": "4"}}, func(*core.Deps) {}),
	} {
		t.Run(name, func(t *testing.T) {
			address := attached(t, a, nil)
			apitest.Ask(t, a, "PUT /db", "", asAdmin)
			for i := range 4 {
				said(t, address, asAdminTo("PUT /db/doc"+strconv.Itoa(i))+"Content-Length: 9\r\n\r\n{")
				for a.Active() != i+1 { // it is at work
					<-time.After(time.Millisecond)
				}
			}
			for request, want := range map[string]int{
				"GET /_up": 200, "GET /_node/_local/_prometheus": 200, "GET /_node/_local/_stats": 200, "GET /_node/_local/_system": 200, "GET /db": 503,
			} {
				conn, answer := said(t, address, asAdminTo(request)+"\r\n")
				res, err := answer()
				if err != nil || res.StatusCode != want || (want == 503) != (res.Header.Get("Retry-After") == "1") {
					t.Errorf("%s: %v, %v", request, res, err)
				}
				apitest.Must(t, conn.Close())
				for a.Connections.Stats().Open > 4 || a.Active() > 4 {
					<-time.After(time.Millisecond)
				}
			}
			if stats := a.Connections.Stats(); stats.Evicted != 0 {
				t.Errorf("a connection at work was cut off: %+v", stats)
			}
		})
	}
}

// elsewhere is a connection of another machine.
type elsewhere struct {
	net.Conn
	ip string
}

// RemoteAddr implements net.Conn.
func (e elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(e.ip), Port: 1} }

// Close implements net.Conn.
func (elsewhere) Close() error { return nil }

// TestShareOfAnAddress: one address has as many of the connections as the setting says,
// a trusted proxy any number.
func TestShareOfAnAddress(t *testing.T) {
	values := config.Values{"chttpd": {"connections_per_address": "20", "trusted_proxies": "10.0.0.9"}}
	a := nodeAs(t, "divan@127.0.0.1", values, func(d *core.Deps) { d.Limits.Connections = 10 })
	for _, c := range []struct {
		ip   string
		most int
	}{{"10.0.0.1", 2}, {"10.0.0.2", 2}, {"10.0.0.9", 4}} {
		n := 0
		for range 4 {
			if conn, ok := a.Connections.Admit(elsewhere{ip: c.ip}); ok {
				conn.Begin() // it is at work
				n++
			}
		}
		if n != c.most {
			t.Errorf("%s has %d connections, want %d", c.ip, n, c.most)
		}
	}
}
