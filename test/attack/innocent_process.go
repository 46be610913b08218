package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	innocents = 2
	innocence = 4 * time.Millisecond // between two requests
)

// working is an innocent client at work, in its own process.
type working struct {
	server    *server
	functions bool // of its database are used, too

	mu    sync.Mutex
	acked []string
	waits waits
	last  time.Time // of the newest success
}

// beInnocent works, answers each line of its input with what was waited, and its end
// with what was acknowledged.
func beInnocent(host string, functions bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &working{server: newServer(host), functions: functions, last: time.Now(), acked: []string{}}
	var done sync.WaitGroup
	for n := range innocents {
		done.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				w.one(ctx, k, fmt.Sprintf("doc-%d-%07d", n, k))
				select {
				case <-time.After(innocence):
				case <-ctx.Done():
				}
			}
		})
	}
	in, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	var err error
	for in.Scan() {
		err = errors.Join(err, out.Encode(w.take()))
	}
	cancel()
	done.Wait()
	return errors.Join(err, in.Err(), out.Encode(w.acked))
}

// one writes a document and reads it, and uses a function.
func (w *working) one(ctx context.Context, k int, id string) {
	paths := []string{id, id}
	if w.functions {
		paths = append(paths, usesOf(k, id))
	}
	for i, path := range paths {
		method, body := http.MethodGet, any(nil)
		if i == 0 {
			method, body = http.MethodPut, map[string]string{"text": "what nobody may lose"}
		}
		start := time.Now()
		status, err := w.server.call(ctx, method, "/kept/"+path, body, nil)
		if ctx.Err() != nil {
			return
		}
		ok := err == nil && status < 300
		w.mu.Lock()
		if ok {
			now := time.Now()
			w.waits.Took = append(w.waits.Took, now.Sub(start))
			w.waits.Longest = max(w.waits.Longest, now.Sub(w.last))
			w.last = now
			if method == http.MethodPut {
				w.acked = append(w.acked, id)
			}
		} else {
			w.waits.Refused++
		}
		w.mu.Unlock()
		if !ok {
			return
		}
	}
}

// take returns what was waited since the last call.
func (w *working) take() waits {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.waits
	out.Longest = max(out.Longest, time.Since(w.last))
	w.waits = waits{}
	w.last = time.Now()
	return out
}
