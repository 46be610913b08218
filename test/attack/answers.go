package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Figures of trickledAnswers.
const (
	heldMemory  = 400 // MB that there are for bodies and answers
	heldGrowth  = 900 // MB that the process may grow by: the collector lets garbage wait
	tricklers   = 100
	storedBytes = 250_000 // of the stored field of one of the documents
	storedDocs  = 130
)

// trickledAnswers asks for 33 MB of stored fields on each of many connections, and reads
// 4 KB in 15 s of them.
func trickledAnswers(ctx context.Context, w *world) (string, error) {
	s, err := w.started(ctx)
	if err != nil {
		return "", err
	}
	if err := storedFields(ctx, s); err != nil {
		return "", err
	}
	if err := w.watch(ctx, s); err != nil {
		return "", err
	}
	var begun, refused atomic.Int64
	before := s.memory()
	most := before
	w.length = 2 * w.length // all of them have to be answered
	w.attacked(ctx, func(ctx context.Context) {
		each(ctx, tricklers+1, func(ctx context.Context, i int) {
			if i == tricklers {
				for rest(ctx, 100*time.Millisecond) {
					most = max(most, s.memory())
				}
				return
			}
			switch status := s.takeTrickle(ctx, i, fmt.Sprintf("/stored/_design/d/_search/i?q=all&limit=%d", storedDocs)); status {
			case "200":
				begun.Add(1)
			case "503":
				refused.Add(1)
			}
		})
	})
	seen := fmt.Sprintf("memory %d to %d MB, %d answers begun, %d refused", before, most, begun.Load(), refused.Load())
	switch {
	case begun.Load() == 0:
		return seen, fmt.Errorf("no answer has begun")
	case most > before+heldGrowth:
		return seen, fmt.Errorf("%d MB for readers that read 4 KB in 15 s", most-before)
	}
	return seen, back(ctx, s)
}

// storedFields makes the database stored with an index that has large stored fields.
func storedFields(ctx context.Context, s *server) error {
	if err := s.must(ctx, http.MethodPut, "/_node/_local/_config/chttpd/max_body_memory", fmt.Sprint(heldMemory<<20)); err != nil {
		return err
	}
	if err := s.must(ctx, http.MethodPut, "/stored?q=1", nil); err != nil {
		return err
	}
	if err := s.must(ctx, http.MethodPut, "/stored/_design/d", map[string]any{"indexes": map[string]any{"i": map[string]any{
		"index": "function (doc) { index('default', 'all'); index('s', doc.s, {store: true, index: false}); }",
	}}}); err != nil {
		return err
	}
	text := strings.Repeat("x", storedBytes)
	for i := range storedDocs {
		if err := s.must(ctx, http.MethodPut, fmt.Sprintf("/stored/d%d", i), map[string]any{"s": text}); err != nil {
			return err
		}
	}
	return s.must(ctx, http.MethodGet, "/stored/_design/d/_search/i?q=all&limit=1", nil)
}

// takeTrickle asks on a connection of its own and takes 4 KB in 15 s of the answer until ctx ends.
// It returns the status, empty when there was none.
func (s *server) takeTrickle(ctx context.Context, i int, path string) (status string) {
	c, err := dial(ctx, i, s.host)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }() // the server may have closed it
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.host+path, http.NoBody)
	if err != nil {
		return ""
	}
	r.SetBasicAuth(user, password)
	if r.Write(c) != nil {
		return ""
	}
	piece := make([]byte, 4<<10)
	for {
		n, err := io.ReadAtLeast(c, piece, len("HTTP/1.1 200"))
		if err != nil {
			return status
		}
		if line := string(piece[:n]); status == "" && strings.HasPrefix(line, "HTTP/1.1 ") {
			status = line[len("HTTP/1.1 "):len("HTTP/1.1 200")]
		}
		if !rest(ctx, 15*time.Second) {
			return status
		}
	}
}
