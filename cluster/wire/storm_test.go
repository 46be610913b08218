package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"divan/storage/fault"
)

// Many callers of all sizes, some of which give up, on a connection that is cut and healed: an
// answer is always the right one, an error is one of a node that is down or of a caller that gave
// up, and in the end no space, slot or call is left behind.
func TestStorm(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, uint64(seed)) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	t.Helper()
	n := newMemNet()
	a := runNode(t, n, "a", ServerOptions{})
	defer a.stop()
	b := runNode(t, n, "b", ServerOptions{MaxInFlight: 5, Handlers: map[string]Handler{
		"slow": func(ctx context.Context, _ string, request []byte) ([]byte, error) {
			timer := time.NewTimer(time.Duration(len(request)) * time.Microsecond / 100)
			defer timer.Stop()
			select {
			case <-timer.C:
				return request, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}})
	defer b.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 0))
		for ctx.Err() == nil {
			rest(ctx, time.Duration(rng.IntN(4000))*time.Millisecond)
			n.sever("a", "b", true)
			rest(ctx, time.Duration(rng.IntN(2000))*time.Millisecond)
			n.sever("a", "b", false)
		}
	})
	for i := range 20 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i+1)))
			for ctx.Err() == nil {
				ask(ctx, t, a, rng)
				rest(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
			}
		})
	}
	wg.Wait()
	rest(t.Context(), 5*time.Second)
	if answer, err := a.pool.Ask(t.Context(), "b@b", "slow", []byte("x")); err != nil || string(answer) != "x" {
		t.Fatalf("after the storm: %q, %v", answer, err)
	}
	l, err := a.pool.Peer("b@b").connected(nil)
	if err != nil {
		t.Fatal(err)
	}
	for c := range l.space {
		if !l.space[c].TryAcquire(classBytes) {
			t.Fatalf("space of class %d is still taken", c)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames.mu.Lock()
	defer l.frames.mu.Unlock()
	if len(l.mu.calls) != 0 || len(l.frames.mu.queue) != 0 || l.streams.Load() != 0 {
		t.Fatalf("left: %d calls, %d messages, %d streams", len(l.mu.calls), len(l.frames.mu.queue), l.streams.Load())
	}
}

func ask(ctx context.Context, t *testing.T, a *node, rng *rand.Rand) {
	t.Helper()
	body := bytes.Repeat([]byte{byte(rng.Uint32())}, rng.IntN(100))
	if rng.IntN(10) == 0 {
		body = bytes.Repeat(body, rng.IntN(6000))
	}
	if rng.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(50))*time.Millisecond)
		defer cancel()
	}
	answer, err := a.pool.Ask(ctx, "b@b", "slow", body)
	switch {
	case err == nil && !bytes.Equal(answer, body):
		t.Errorf("the answer to another call: %d bytes for %d", len(answer), len(body))
	case err != nil && ctx.Err() == nil && !fault.Is(err, fault.NodeDown) && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("got %v", err)
	}
}
