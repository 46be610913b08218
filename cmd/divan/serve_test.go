package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// incompressible returns bytes that follow from their number.
func incompressible(seed uint64, size int) []byte {
	out := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)}).Read(out) // never fails
	return out
}

// openFeed opens a feed and returns its lines as they come.
func openFeed(t *testing.T, c *client, path string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.http.Transport.RoundTrip(withAuth(req))
	if err != nil {
		t.Fatal(err)
	}
	lines, over := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(over)
		defer close(lines)
		defer cancel()
		defer func() { _ = res.Body.Close() }()
		for in := bufio.NewReader(res.Body); ; {
			line, err := in.ReadString('\n')
			if err == nil && strings.TrimSpace(line) != "" {
				lines <- strings.TrimSpace(line)
			}
			if err != nil {
				if err != io.EOF {
					lines <- "broken off: " + err.Error()
				}
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return lines
}

func withAuth(req *http.Request) *http.Request {
	if password, ok := req.URL.User.Password(); ok {
		req.SetBasicAuth(req.URL.User.Username(), password)
	}
	return req
}

// last returns the last line of a feed that ends.
func last(t *testing.T, lines <-chan string) string {
	t.Helper()
	text := ""
	for deadline := time.After(patience); ; {
		select {
		case line, ok := <-lines:
			if !ok {
				return text
			}
			text = line
		case <-deadline:
			t.Fatal("the feed does not end in time")
		}
	}
}

// TestGracefulStop asks the program to stop while feeds and a request are
// under way.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startServer(t, adminEnviron(), "--data", dir)
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond", "", 201)
	c.want(t, "PUT", "/pond/frog", "{}", 201)
	continuous := openFeed(t, c, "/pond/_changes?feed=continuous&heartbeat=60000")
	longpoll := openFeed(t, c, "/pond/_changes?feed=longpoll&since=now&heartbeat=60000")
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "PUT /pond/toad HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\n"+
		"Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatal(line, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line := last(t, continuous); !strings.HasPrefix(line, `{"last_seq":"1-`) {
		t.Errorf("the continuous feed ends with %s", line)
	}
	if line := last(t, longpoll); !strings.HasPrefix(line, `"last_seq":"1-`) {
		t.Errorf("the longpoll feed ends with %s", line)
	}
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	_, _ = in.ReadString('\n') // the end of the 100
	if line, err := in.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 201") {
		t.Errorf("the request under way: %q, %v", line, err)
	}
	if status := p.wait(); status != 0 {
		t.Errorf("exit status %d\n%s", status, p.output())
	}
	checkDirectory(t, dir)
	p = startServer(t, adminEnviron(), "--data", dir)
	newClient(t, p.address).want(t, "GET", "/pond/toad", "", 200)
	p.stop()
}

// TestSecondSignal ends a program that waits for a request.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := startServer(t, adminEnviron(), "--data", t.TempDir())
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /_session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatal(line, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the program stops", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.wait(); status != 128+int(syscall.SIGTERM) {
		t.Errorf("exit status %d, want that of an end by a signal", status)
	}
}

// TestRestart restarts the node inside its process.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := launch(t, adminEnviron(), "--data", dir, "--listen", "127.0.0.1:"+strconv.Itoa(freePort(t)))
	p.awaitReady()
	c := newClient(t, p.address)
	c.want(t, "PUT", "/pond", "", 201)
	for range 3 {
		feed := openFeed(t, c, "/pond/_changes?feed=continuous&heartbeat=60000")
		started := strings.Count(p.output(), "Divan answers on")
		c.want(t, "POST", "/_node/_local/_restart", "", 200)
		if line := last(t, feed); !strings.HasPrefix(line, `{"last_seq":"`) {
			t.Errorf("the feed ends with %s", line)
		}
		eventually(t, "the node is back", func() bool { return strings.Count(p.output(), "Divan answers on") > started })
		c.want(t, "GET", "/pond", "", 200)
	}
	p.stop()
	checkDirectory(t, dir)
}
