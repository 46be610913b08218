package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"divan/cmd/divan/porttest"
)

// cluster starts n nodes and makes them one.
func (w *world) cluster(ctx context.Context, n int) (ports []int, err error) {
	setup := []string{"setup", "--admin", user + ":" + password}
	for i := range n {
		port, err := porttest.Free(ctx)
		if err != nil {
			return nil, err
		}
		at := "127.0.0.1:" + strconv.Itoa(port)
		s, err := w.started(ctx, fmt.Sprintf("NODENAME=node%d@127.0.0.1", i+1), "DIVAN_COUCHDB__SINGLE_NODE=false",
			"DIVAN_CLUSTER__BIND_ADDRESS=127.0.0.1", "DIVAN_CLUSTER__PORT="+strconv.Itoa(port), "DIVAN_CLUSTER__ADVERTISE="+at)
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
		setup = append(setup, "http://"+s.host)
	}
	if text, err := w.servers[0].command(ctx, setup...); err != nil {
		return nil, fmt.Errorf("setup: %s: %w", text, err)
	}
	return ports, nil
}

// members waits until a node knows of n voters.
func (s *server) members(ctx context.Context, n int) error {
	late := time.Now().Add(patience)
	for {
		var answer struct {
			Metadata struct {
				Voters []string `json:"voters"`
			} `json:"metadata"`
		}
		status, err := s.call(ctx, http.MethodGet, "/_node/_local/_system", nil, &answer)
		if err == nil && status == http.StatusOK && len(answer.Metadata.Voters) >= n {
			return nil
		}
		if !rest(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
		if time.Now().After(late) {
			return fmt.Errorf("%s knows of %d voters: %s", s.host, len(answer.Metadata.Voters), s.lastLines())
		}
	}
}

func handshakes(ctx context.Context, w *world) (string, error) {
	ports, err := w.cluster(ctx, 3)
	if err != nil {
		return "", err
	}
	if err := w.watch(ctx, w.servers[0]); err != nil {
		return "", err
	}
	last := w.servers[2]
	var count atomic.Int64
	var took time.Duration
	w.length = patience // or until the member is back
	w.attacked(ctx, func(ctx context.Context) {
		ctx, enough := context.WithCancel(ctx)
		defer enough()
		each(ctx, 65, func(ctx context.Context, i int) {
			if i < 64 {
				for ctx.Err() == nil {
					greet(ctx, i, ports[i%3])
					count.Add(1)
				}
				return
			}
			last.process.Kill()
			start := time.Now()
			if err = last.start(ctx); err == nil {
				err = last.members(ctx, 3)
			}
			took = time.Since(start)
			enough()
		})
	})
	seen := fmt.Sprintf("%d handshakes, the member was back after %.1f s", count.Load(), took.Seconds())
	if err != nil {
		return seen, fmt.Errorf("the member did not come back: %w", err)
	}
	return seen, back(ctx, w.servers[0])
}

// greet begins a handshake: it says nonsense, has TLS done and leaves, or has TLS done and says
// what a node would not.
func greet(ctx context.Context, i, port int) {
	c, err := dial(ctx, i, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		rest(ctx, 10*time.Millisecond)
		return
	}
	defer func() { _ = c.Close() }() // the node may have closed it
	_ = c.SetDeadline(time.Now().Add(time.Second))
	word := strings.Repeat("GET / ", 40)
	if i%3 > 0 {
		secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:gosec // an attacker does not care
		if secured.HandshakeContext(ctx) != nil {
			return
		}
		if c, word = secured, "\x00\x04div1"; i%3 == 1 {
			return
		}
	}
	if _, err := io.WriteString(c, word); err == nil {
		_, _ = c.Read(make([]byte, 64)) // its answer does not matter
	}
}
