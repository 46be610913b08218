package main

import (
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// cutter passes connections on to a server, and cuts some of them after a random
// number of bytes.
type cutter struct {
	t      *testing.T
	listen net.Listener
	server string       // host:port
	left   atomic.Int64 // how many connections it still cuts
	mean   float64      // bytes that go through before a cut

	mu     sync.Mutex
	rng    *rand.Rand
	open   map[net.Conn]struct{}
	closed bool
	work   sync.WaitGroup
}

func startCutter(t *testing.T, server string, rng *rand.Rand, cuts int, mean float64) *cutter {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{t: t, listen: l, server: server, mean: mean, rng: rng, open: map[net.Conn]struct{}{}}
	c.left.Store(int64(cuts))
	c.work.Go(c.accept)
	t.Cleanup(c.close)
	return c
}

func (c *cutter) address() string { return c.listen.Addr().String() }

func (c *cutter) close() {
	_ = c.listen.Close() // accept reports what is wrong
	c.mu.Lock()
	c.closed = true
	for conn := range c.open {
		_ = conn.Close() // the goroutine that uses it notices
	}
	c.mu.Unlock()
	c.work.Wait()
}

// keep has a connection closed at the end of the test; false after that.
func (c *cutter) keep(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.open[conn] = struct{}{}
	}
	return !c.closed
}

func (c *cutter) forget(conn net.Conn) {
	_ = conn.Close() // it may be closed already
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

func (c *cutter) accept() {
	for {
		conn, err := c.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.t.Error(err)
			return
		}
		c.work.Go(func() { c.pass(conn) })
	}
}

// pass copies in both directions until one side closes or the connection is cut.
func (c *cutter) pass(conn net.Conn) {
	defer c.forget(conn)
	var dialer net.Dialer
	server, err := dialer.DialContext(c.t.Context(), "tcp", c.server)
	if err != nil {
		return // it was killed
	}
	defer c.forget(server)
	if !c.keep(conn) || !c.keep(server) {
		return
	}
	c.mu.Lock()
	allowed := int64(c.rng.ExpFloat64() * c.mean)
	c.mu.Unlock()
	var passed atomic.Int64
	both := func() { // ends the other direction too
		_ = conn.Close()
		_ = server.Close()
	}
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, server}, {server, conn}} {
		wg.Go(func() {
			defer both()
			buf := make([]byte, 4096)
			for {
				n, err := way[0].Read(buf)
				before := passed.Add(int64(n)) - int64(n)
				if over := before + int64(n) - allowed; over > 0 && c.left.Load() > 0 && c.left.Add(-1) >= 0 {
					_, _ = way[1].Write(buf[:max(0, int64(n)-over)]) // a part of what was under way
					return
				}
				if _, failed := way[1].Write(buf[:n]); failed != nil || err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
}

// startSpoiler passes requests on to a server, and answers some of them itself,
// with 500, 503 or 429, or breaks off the server's answer.
func startSpoiler(t *testing.T, server string, rng *rand.Rand, spoilt int) (address string, left func() int) {
	t.Helper()
	var mu sync.Mutex
	inner := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
	inner.FlushInterval = -1
	inner.ErrorLog = log.New(io.Discard, "", 0) // of connections that the test breaks off
	dice := func() int {
		mu.Lock()
		defer mu.Unlock()
		if spoilt == 0 {
			return 0
		}
		n := rng.IntN(10)
		if n < 4 {
			spoilt--
		}
		return 1 + n
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch dice() {
		case 1:
			http.Error(w, `{"error":"internal_server_error","reason":"spoilt"}`, http.StatusInternalServerError)
		case 2:
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case 3: // which may come when the server has done its work
			inner.ServeHTTP(discarded{http.Header{}}, r)
			http.Error(w, `{"error":"internal_server_error","reason":"spoilt afterwards"}`, http.StatusInternalServerError)
		case 4:
			http.Error(w, `{"error":"too_many_requests","reason":"spoilt"}`, http.StatusTooManyRequests)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return spoilt
	}
}

// discarded is a response writer that throws the answer away.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return io.Discard.Write(b) }
func (d discarded) WriteHeader(int)             {}
