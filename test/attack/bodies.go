package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// most notes the most memory that a server takes until ctx ends.
func most(ctx context.Context, s *server) int {
	highest := 0
	for rest(ctx, 50*time.Millisecond) {
		highest = max(highest, s.memory())
	}
	return highest
}

// send sends a request with a body and returns the status; 0: no answer.
func send(c *http.Client, r *http.Request) int {
	r.SetBasicAuth(user, password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close() // the status says enough
	return answer.StatusCode
}

// statuses counts what attackers were answered.
type statuses struct {
	mu sync.Mutex
	n  map[int]int
}

func (s *statuses) add(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[int]int{}
	}
	s.n[status]++
}

// String implements fmt.Stringer.
func (s *statuses) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimPrefix(fmt.Sprint(s.n), "map")
}

// flood has n attackers send bodies, and bounds what memory that may cost in MB.
func flood(ctx context.Context, w *world, n, limit int, request func(ctx context.Context, s *server, i int) (*http.Request, error)) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	before, highest := s.memory(), 0
	var answers statuses
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, n+1, func(ctx context.Context, i int) {
			if i == n {
				highest = most(ctx, s)
				return
			}
			for ctx.Err() == nil {
				r, err := request(ctx, s, i)
				if err != nil {
					return
				}
				if status := send(client, r); ctx.Err() == nil {
					answers.add(status)
				}
			}
		})
	})
	seen := fmt.Sprintf("answers %v, memory %d MB, at most %d", &answers, before, highest)
	if highest > before+limit {
		return seen, fmt.Errorf("it took %d MB", highest-before)
	}
	return seen, back(ctx, s)
}

func inflatingBodies(ctx context.Context, w *world) (string, error) {
	bomb := &bytes.Buffer{}
	z := gzip.NewWriter(bomb)
	for _, part := range []string{`{"docs":[{"text":"`, strings.Repeat(strings.Repeat("0", 1<<20), 1<<10), `"}]}`} {
		if _, err := io.WriteString(z, part); err != nil {
			return "", err
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	paths := []string{"/kept/_bulk_docs", "/kept", "/kept/_find", "/_session", "/kept/_all_docs", "/kept/_revs_diff"}
	return flood(ctx, w, 24, budget(w), func(ctx context.Context, s *server, i int) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.host+paths[i%len(paths)], bytes.NewReader(bomb.Bytes()))
		if err == nil {
			r.Header.Set("Content-Encoding", "gzip")
		}
		return r, err
	})
}

// budget is how much memory bodies may take here, in MB.
func budget(*world) int { return 4 << 10 }

func largeBodies(ctx context.Context, w *world) (string, error) {
	text := bytes.Repeat([]byte("0"), 60<<20)
	return flood(ctx, w, 24, budget(w), func(ctx context.Context, s *server, _ int) (*http.Request, error) {
		// Not of strings: each would be copied whole to be sent, and the innocent client
		// of this process would wait for that.
		body := io.MultiReader(strings.NewReader(`{"docs":[{"text":"`), bytes.NewReader(text), strings.NewReader(`"}]}`))
		return http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.host+"/kept/_bulk_docs", body)
	})
}
