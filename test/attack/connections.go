package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// each runs n attackers until ctx ends.
func each(ctx context.Context, n int, play func(ctx context.Context, i int)) {
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { play(ctx, i) })
	}
	running.Wait()
}

// rest waits; false: ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// dial connects from an address of the loopback network of its own, as clients on
// other machines would.
func dial(ctx context.Context, i int, host string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+i/200), byte(1+i%200))}, Timeout: 5 * time.Second}
	return d.DialContext(ctx, "tcp", host)
}

// trickle sends the beginning of a request and then a byte a second, on a new
// connection when the server has ended the one before. It counts those.
func trickle(ctx context.Context, i int, host, begin string, ended *atomic.Int64) {
	for ctx.Err() == nil {
		c, err := dial(ctx, i, host)
		if err != nil {
			rest(ctx, 100*time.Millisecond)
			continue
		}
		_, err = io.WriteString(c, begin)
		for err == nil && rest(ctx, time.Second) {
			_, err = io.WriteString(c, "x")
		}
		_ = c.Close() // the server may have closed it
		if err != nil {
			ended.Add(1)
		}
	}
}

// back checks that a new connection is served within a second after an attack.
func back(ctx context.Context, s *server) error {
	s.client.CloseIdleConnections()
	start := time.Now()
	if err := s.await(ctx, 5*time.Second); err != nil {
		return err
	}
	if took := time.Since(start); took > time.Second {
		return fmt.Errorf("a new connection was served after %v", took)
	}
	return s.must(ctx, http.MethodPut, fmt.Sprintf("/kept/after-%d", time.Now().UnixNano()), struct{}{})
}

func descriptors(ctx context.Context, w *world) (string, error) {
	s, err := w.server(ctx)
	if err != nil {
		return "", err
	}
	s.limit = 256
	if err := s.start(ctx); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	var ended atomic.Int64
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 2000, func(ctx context.Context, i int) {
			trickle(ctx, i, s.host, "GET /kept HTTP/1.1\r\nHost: a\r\nX-", &ended)
		})
	})
	return fmt.Sprintf("%d were cut off", ended.Load()), back(ctx, s)
}

func slowBodies(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	var ended, strange atomic.Int64
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 3001, func(ctx context.Context, i int) {
			if i < 3000 {
				trickle(ctx, i, s.host, "POST /_session HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{", &ended)
				return
			}
			for rest(ctx, 500*time.Millisecond) { // a client that has no connection yet
				if !up(ctx, s) && ctx.Err() == nil {
					strange.Add(1)
				}
			}
		})
	})
	if n := strange.Load(); n > 0 {
		err = fmt.Errorf("/_up was not answered %d times", n)
	}
	if err == nil {
		err = back(ctx, s)
	}
	return fmt.Sprintf("%d were cut off", ended.Load()), err
}

// up asks on a connection of its own whether the server is up.
func up(ctx context.Context, s *server) bool {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.host+"/_up", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := c.Do(r)
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // the status says enough
	return answer.StatusCode == http.StatusOK
}

func slowReaders(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	docs := make([]map[string]any, 2000)
	for i := range docs {
		docs[i] = map[string]any{"_id": fmt.Sprintf("big-%d", i), "text": fmt.Sprintf("%01000d", i)}
	}
	if err := s.must(ctx, http.MethodPost, "/kept/_bulk_docs", map[string]any{"docs": docs}); err != nil {
		return "", err
	}
	before := s.memory()
	most := before
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, 200, func(ctx context.Context, i int) {
			c, err := dial(ctx, i, s.host)
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }() // the server may have closed it
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.host+"/kept/_all_docs?include_docs=true", http.NoBody)
			if err != nil {
				return
			}
			r.SetBasicAuth(user, password)
			if r.Write(c) == nil {
				<-ctx.Done()
			}
			if i == 0 {
				most = s.memory()
			}
		})
	})
	seen := fmt.Sprintf("memory %d to %d MB", before, most)
	if most > before+400 {
		return seen, fmt.Errorf("%d MB for readers that read nothing", most-before)
	}
	return seen, back(ctx, s)
}
