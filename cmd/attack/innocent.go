package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// innocent is a client that writes documents and reads them, and remembers what
// was acknowledged. It has its connections before an attack begins.
type innocent struct {
	server *server
	end    context.CancelFunc
	done   sync.WaitGroup

	mu    sync.Mutex
	acked []string
	waits waits
	last  time.Time // of the newest success
}

// waits is what a client had to wait.
type waits struct {
	took    []time.Duration
	longest time.Duration // between two successes
	refused int
}

const (
	innocents = 2
	innocence = 4 * time.Millisecond // between two requests
	// shortest is what a usual wait counts at least: on a machine whose processors
	// are busy, everything waits for its turn.
	shortest = 10 * time.Millisecond
	gapLimit = time.Second
)

// p99 is the time that 99 of 100 requests took at most.
func (w *waits) p99() time.Duration {
	if len(w.took) == 0 {
		return 0
	}
	slices.Sort(w.took)
	return w.took[len(w.took)*99/100]
}

// watch has an innocent client work, and measures what it waits without an attack.
func (w *world) watch(ctx context.Context, s *server) error {
	if err := s.must(ctx, http.MethodPut, "/kept?q=2", nil); err != nil {
		return err
	}
	w.innocent = newInnocent(ctx, s)
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.usual = w.innocent.take()
	w.watched = true
	return nil
}

// attacked plays an attack for as long as the flags say, and notes what the
// innocent client waited meanwhile.
func (w *world) attacked(ctx context.Context, play func(ctx context.Context)) {
	limited, cancel := context.WithTimeout(ctx, w.length)
	defer cancel()
	w.innocent.take()
	play(limited)
	w.meanwhile = w.innocent.take()
}

// told is what the innocent client has seen.
func (w *world) told() string {
	if !w.watched {
		return ""
	}
	return fmt.Sprintf("p99 %.1f ms, usually %.1f ms, longest wait %.2f s, %d refused; ",
		ms(w.meanwhile.p99()), ms(w.usual.p99()), w.meanwhile.longest.Seconds(), w.meanwhile.refused)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// judge says whether the innocent client suffered.
func (w *world) judge() error {
	most := 10 * max(w.usual.p99(), shortest)
	switch {
	case w.meanwhile.longest > gapLimit:
		return fmt.Errorf("the innocent client got nothing for %.1f s", w.meanwhile.longest.Seconds())
	case w.meanwhile.p99() > most:
		return fmt.Errorf("its p99 was %v, more than %v", w.meanwhile.p99(), most)
	}
	return nil
}

func newInnocent(ctx context.Context, s *server) *innocent {
	ctx, cancel := context.WithCancel(ctx)
	i := &innocent{server: s, end: cancel, last: time.Now()}
	for n := range innocents {
		i.done.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				i.one(ctx, fmt.Sprintf("doc-%d-%07d", n, k))
				select {
				case <-time.After(innocence):
				case <-ctx.Done():
				}
			}
		})
	}
	return i
}

// one writes a document and reads it.
func (i *innocent) one(ctx context.Context, id string) {
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		var body any
		if method == http.MethodPut {
			body = map[string]string{"text": "what nobody may lose"}
		}
		start := time.Now()
		status, err := i.server.call(ctx, method, "/kept/"+id, body, nil)
		if ctx.Err() != nil {
			return
		}
		ok := err == nil && status < 300
		i.mu.Lock()
		if ok {
			now := time.Now()
			i.waits.took = append(i.waits.took, now.Sub(start))
			i.waits.longest = max(i.waits.longest, now.Sub(i.last))
			i.last = now
			if method == http.MethodPut {
				i.acked = append(i.acked, id)
			}
		} else {
			i.waits.refused++
		}
		i.mu.Unlock()
		if !ok {
			return
		}
	}
}

// take returns what was waited since the last call.
func (i *innocent) take() waits {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.waits
	w.longest = max(w.longest, time.Since(i.last))
	i.waits = waits{}
	i.last = time.Now()
	return w
}

func (i *innocent) stop() {
	i.end()
	i.done.Wait()
}

// check looks for what was acknowledged.
func (i *innocent) check(ctx context.Context) error {
	for part := range slices.Chunk(i.acked, 1000) {
		var answer struct {
			Rows []struct {
				Key   string `json:"key"`
				Error string `json:"error"`
			} `json:"rows"`
		}
		status, err := i.server.call(ctx, http.MethodPost, "/kept/_all_docs", map[string]any{"keys": part}, &answer)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("the documents cannot be read: status %d, %w", status, err)
		}
		for _, row := range answer.Rows {
			if row.Error != "" {
				return fmt.Errorf("LOST: document %s, which was acknowledged, is %s", row.Key, row.Error)
			}
		}
		if len(answer.Rows) != len(part) {
			return fmt.Errorf("LOST: %d of %d documents", len(part)-len(answer.Rows), len(part))
		}
	}
	return nil
}
