package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// asLimited is how many file descriptors the program may have that a test starts.
const asLimited = "TEST_DESCRIPTORS"

// limitSelf takes descriptors from this process.
func limitSelf() {
	n, err := strconv.ParseUint(os.Getenv(asLimited), 10, 64)
	if err != nil {
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		fmt.Fprintln(os.Stderr, "limit:", err)
		os.Exit(1)
	}
}

// hold opens connections that send the beginning of a request and wait. Those that
// the server closes are opened again, until the returned function is called.
func hold(t *testing.T, address string, sockets int, beginning string) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var holding, first sync.WaitGroup
	for range sockets {
		first.Add(1)
		holding.Go(func() {
			begun := sync.OnceFunc(first.Done)
			defer begun()
			for ctx.Err() == nil {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				if _, err := io.WriteString(conn, beginning); err == nil {
					begun()
					_, _ = io.Copy(io.Discard, conn) // until the server has enough of it
				}
				stop()
				_ = conn.Close()
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
	first.Wait()
	return sync.OnceFunc(func() {
		cancel()
		holding.Wait()
	})
}

// slowest does something for a while and returns how long it took at most.
func slowest(t *testing.T, d time.Duration, do func() error) time.Duration {
	t.Helper()
	worst, n := time.Duration(0), 0
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		began := time.Now()
		if err := do(); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
			return worst
		}
		worst = max(worst, time.Since(began))
	}
	t.Logf("%d times, the slowest took %v", n, worst)
	return worst
}

// innocent returns a client that writes and reads documents of many databases, on
// a connection of its own for each request or on one for all.
func innocent(t *testing.T, address string, databases int, anew bool) func() error {
	t.Helper()
	c := newClient(t, address)
	if anew {
		c.http.Transport.(*http.Transport).DisableKeepAlives = true
	}
	// A client that gets no processor for longer than the node waits for a request, or whose
	// connection waits for its next one, is cut off and comes again, as clients do. Nothing
	// of its request was done.
	persistent := func(method, path string, body []byte) (status int, answer []byte, err error) {
		for range 20 {
			status, answer, err = c.do(method, path, "application/json", body)
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				break
			}
		}
		return status, answer, err
	}
	n := 0
	return func() error {
		n++
		path := fmt.Sprintf("/pond%d/%v-%d", n%databases, anew, n)
		status, answer, err := persistent("PUT", path, []byte(`{"n":1}`))
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("PUT %s: %d %s", path, status, answer)
		}
		if err != nil {
			return err
		}
		status, answer, err = persistent("GET", path, nil)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("GET %s: %d %s", path, status, answer)
		}
		return err
	}
}

// TestFewDescriptors has 2,000 sockets that send half a header to a node with 256
// descriptors: a client with a connection is answered, one that opens one too, the
// process lives, and within a second after it all is as before.
func TestFewDescriptors(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector an innocent client is as slow as the others")
	}
	const databases, attackers = 40, 2000
	p := startServer(t, append(adminEnviron(), asLimited+"=256", "DIVAN_LOG__LEVEL=warn"), "--data", t.TempDir())
	c := newClient(t, p.address)
	for i := range databases {
		c.want(t, "PUT", fmt.Sprintf("/pond%d", i), "", 201)
	}
	kept, anew := innocent(t, p.address, databases, false), innocent(t, p.address, databases, true)
	slowest(t, 500*time.Millisecond, kept) // it has its connection now
	release := hold(t, p.address, attackers, "GET /pond0 HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	defer release()
	if worst := slowest(t, 3*time.Second, kept); worst > time.Second {
		t.Errorf("a client with a connection waited for %v", worst)
	}
	if worst := slowest(t, 3*time.Second, anew); worst > 3*time.Second {
		t.Errorf("a client without a connection waited for %v", worst)
	}
	release()
	wait(t, time.Second, "new connections are answered", func() bool { return anew() == nil })
	for _, line := range strings.Split(c.want(t, "GET", "/_node/_local/_prometheus", "", 200), "\n") {
		if n, ok := strings.CutPrefix(line, "couchdb_connections_evicted_total "); ok && n == "0" {
			t.Error("no figure tells of the connections that were cut off")
		}
	}
	if out := p.output(); strings.Contains(out, "panic") || strings.Contains(out, "too many open files") {
		t.Errorf("the log says:\n%.3000s", out)
	}
	p.stop()
}
