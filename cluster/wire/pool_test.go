package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"divan/storage/fault"
)

// node is a port with a server and a pool.
type node struct {
	running
	pool  *Pool
	start time.Time
	stop  func()

	mu   sync.Mutex
	seen []string // what Subscribe has told
}

func runNode(t *testing.T, n *memNet, host string, o ServerOptions) *node {
	t.Helper()
	r := &node{running: runPort(t, n, host, nil), start: time.Now()}
	r.pool = NewPool(r.Port, zap.NewNop())
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := NewServer(o).Run(ctx, r.Port); err != nil {
			t.Errorf("server: %v", err)
		}
	})
	wg.Go(func() {
		if err := r.pool.Run(ctx); err != nil {
			t.Errorf("pool: %v", err)
		}
	})
	r.pool.Subscribe(func(node string, up bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen = append(r.seen, fmt.Sprintf("%s %t", node, up))
	})
	<-r.pool.Started()
	for r.sub(purposeRPC) == nil {
		runtime.Gosched()
	}
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			wg.Wait()
			r.running.stop()
		})
	}
	t.Cleanup(r.stop)
	return r
}

func (n *node) told() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.seen)
}

// services are handlers for tests.
func services() map[string]Handler {
	return map[string]Handler{
		"echo": func(_ context.Context, from string, request []byte) ([]byte, error) {
			return fmt.Appendf(nil, "%s: %s", from, request), nil
		},
		"same":  func(_ context.Context, _ string, request []byte) ([]byte, error) { return request, nil },
		"panic": func(context.Context, string, []byte) ([]byte, error) { panic("no") },
		"fault": func(context.Context, string, []byte) ([]byte, error) {
			return nil, fmt.Errorf("deep: %w", &fault.Error{Kind: fault.Conflict, Code: "code", Reason: "reason", Err: errors.New("cause")})
		},
		"plain": func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("plain") },
		"wait": func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"deadline": func(context.Context, string, []byte) ([]byte, error) {
			return nil, fmt.Errorf("there: %w", context.DeadlineExceeded)
		},
		"repair": func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			return fmt.Append(nil, IsRepair(ctx)), nil
		},
	}
}

func pair(t *testing.T) (n *memNet, a, b *node) {
	t.Helper()
	n = newMemNet()
	synctest.Wait()
	a = runNode(t, n, "a", ServerOptions{Handlers: services()})
	b = runNode(t, n, "b", ServerOptions{Handlers: services()})
	return n, a, b
}

func TestAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := pair(t)
		defer a.stop()
		defer b.stop()
		ctx := t.Context()
		answer, err := a.pool.Ask(ctx, "b@b", "echo", []byte("hello"))
		if err != nil || string(answer) != "a@a: hello" {
			t.Fatalf("got %q, %v", answer, err)
		}
		answer, err = b.pool.Ask(ctx, "a@a", "echo", nil)
		if err != nil || string(answer) != "b@b: " {
			t.Fatalf("got %q, %v", answer, err)
		}
		var f *fault.Error
		_, err = a.pool.Ask(ctx, "b@b", "fault", nil)
		if !errors.As(err, &f) || f.Kind != fault.Conflict || f.Code != "code" || f.Reason != "reason" || f.Err.Error() != "cause" {
			t.Fatalf("got %#v", err)
		}
		_, err = a.pool.Ask(ctx, "b@b", "plain", nil)
		if err == nil || err.Error() != "plain" || errors.As(err, &f) {
			t.Fatalf("got %v", err)
		}
		if _, err = a.pool.Ask(ctx, "b@b", "panic", nil); !errors.As(err, &f) || f.Kind != fault.Internal {
			t.Fatalf("got %v", err)
		}
		if _, err = a.pool.Ask(ctx, "b@b", "deadline", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if _, err = a.pool.Ask(ctx, "b@b", "nothing", nil); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("got %v", err)
		}
		if answer, err = a.pool.Ask(ForRepair(ctx), "b@b", "repair", nil); err != nil || string(answer) != "true" {
			t.Fatalf("got %s, %v", answer, err)
		}
		if _, err = a.pool.Ask(ctx, "stranger", "echo", nil); !fault.Is(err, fault.NodeDown) {
			t.Fatalf("got %v", err)
		}
		if _, err = a.pool.Ask(ctx, "c@c", "echo", nil); !fault.Is(err, fault.NodeDown) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestDeadlineAndCancelTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 2)
		n := newMemNet()
		a := runNode(t, n, "a", ServerOptions{})
		defer a.stop()
		b := runNode(t, n, "b", ServerOptions{Handlers: map[string]Handler{
			"wait": func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				<-ctx.Done()
				ended <- time.Now()
				return nil, ctx.Err()
			},
		}})
		defer b.stop()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := a.pool.Ask(ctx, "b@b", "wait", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if d := (<-ended).Sub(start); d != 3*time.Second {
			t.Fatalf("ended there after %v", d)
		}
		start = time.Now()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := a.pool.Ask(ctx, "b@b", "wait", nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if d := (<-ended).Sub(start); d != time.Second {
			t.Fatalf("ended there after %v", d)
		}
	})
}

// A node that is cut off fails calls under way within a second, new ones at
// once, and is found again after healing.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := pair(t)
		defer a.stop()
		defer b.stop()
		ctx := t.Context()
		if _, err := a.pool.Ask(ctx, "b@b", "echo", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if !a.pool.Reachable("b@b") {
			t.Fatal("not reachable")
		}
		start := time.Now()
		failed := make(chan error, 2)
		go func() {
			_, err := a.pool.Ask(ctx, "b@b", "wait", nil)
			failed <- err
		}()
		synctest.Wait()
		n.sever("a", "b", true)
		go func() { // one that is not even sent
			_, err := a.pool.Ask(ctx, "b@b", "wait", nil)
			failed <- err
		}()
		for range 2 {
			if err := <-failed; !fault.Is(err, fault.NodeDown) || !bytes.Contains([]byte(err.Error()), []byte("b@b")) {
				t.Fatalf("got %v", err)
			}
		}
		if d := time.Since(start); d > 1100*time.Millisecond {
			t.Fatalf("failed after %v", d)
		}
		start = time.Now()
		if _, err := a.pool.Ask(ctx, "b@b", "echo", nil); !fault.Is(err, fault.NodeDown) || time.Since(start) != 0 {
			t.Fatalf("got %v after %v", err, time.Since(start))
		}
		if a.pool.Peer("b@b") != nil {
			t.Fatal("reachable")
		}
		time.Sleep(10 * time.Second)
		n.sever("a", "b", false)
		time.Sleep(2 * time.Second)
		if _, err := a.pool.Ask(ctx, "b@b", "echo", nil); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(a.told()); got != "[b@b true b@b false b@b true]" {
			t.Fatal(got)
		}
	})
}

// An idle connection that dies is noticed too, within a few seconds.
func TestIdlePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := pair(t)
		defer a.stop()
		defer b.stop()
		if _, err := a.pool.Ask(t.Context(), "b@b", "echo", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		n.sever("a", "b", true)
		time.Sleep(3 * time.Second)
		if a.pool.Reachable("b@b") {
			t.Fatal("still reachable")
		}
	})
}

func TestRestartedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := pair(t)
		defer a.stop()
		if _, err := a.pool.Ask(t.Context(), "b@b", "echo", nil); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := a.pool.Ask(t.Context(), "b@b", "wait", nil)
			failed <- err
		}()
		synctest.Wait()
		b.stop()
		if err := <-failed; err == nil {
			t.Fatal("answered by a stopped node")
		}
		synctest.Wait()
		start := time.Now()
		if _, err := a.pool.Ask(t.Context(), "b@b", "echo", nil); !fault.Is(err, fault.NodeDown) || time.Since(start) != 0 {
			t.Fatalf("got %v after %v", err, time.Since(start))
		}
		b = runNode(t, n, "b", ServerOptions{Handlers: services()})
		defer b.stop()
		time.Sleep(longRest)
		if _, err := a.pool.Ask(t.Context(), "b@b", "echo", nil); err != nil {
			t.Fatal(err)
		}
	})
}

// Large requests and answers pass, and small ones do not wait for them.
func TestLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runNode(t, n, "a", ServerOptions{})
		defer a.stop()
		b := runNode(t, n, "b", ServerOptions{Handlers: services()})
		defer b.stop()
		most := 64 << 20 // a bulk request
		if testing.Short() {
			most = 8 << 20
		}
		large := make([]byte, most+17)
		for i := range large {
			large[i] = byte(i >> 8)
		}
		var wg sync.WaitGroup
		for _, size := range []int{len(large), 0, 1, pieceSize - 9, pieceSize, pieceSize + 1, 3 * frameSize} {
			for range 1 + 3<<20/(size+1<<20) {
				wg.Go(func() {
					answer, err := a.pool.Ask(t.Context(), "b@b", "same", large[:size])
					if err != nil || !bytes.Equal(answer, large[:size]) {
						t.Errorf("%d bytes came back as %d, %v", size, len(answer), err)
					}
				})
			}
		}
		wg.Wait()
		if _, err := a.pool.Ask(t.Context(), "b@b", "same", make([]byte, bodySize)); !fault.Is(err, fault.RequestTooLarge) {
			t.Fatalf("got %v", err)
		}
	})
}

// Callers that give up while their bodies are being sent leave nothing torn.
func TestCancelledLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runNode(t, n, "a", ServerOptions{})
		defer a.stop()
		b := runNode(t, n, "b", ServerOptions{Handlers: services(), MaxInFlight: 4})
		defer b.stop()
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wg.Go(func() { // at any point of the way
					for range 20 * i {
						runtime.Gosched()
					}
					cancel()
				})
				body := bytes.Repeat([]byte{byte(i)}, i*4096)
				answer, err := a.pool.Ask(ctx, "b@b", "same", body)
				switch {
				case err == nil && !bytes.Equal(answer, body):
					t.Errorf("a torn answer")
				case err != nil && !errors.Is(err, context.Canceled):
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		answer, err := a.pool.Ask(t.Context(), "b@b", "same", []byte("still here"))
		if err != nil || string(answer) != "still here" {
			t.Fatalf("got %q, %v", answer, err)
		}
	})
}

// More calls than there are slots wait for their turn, and calls of another
// class pass them.
func TestInFlightIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		a := runNode(t, n, "a", ServerOptions{})
		defer a.stop()
		var mu sync.Mutex
		running, most := 0, 0
		b := runNode(t, n, "b", ServerOptions{MaxInFlight: 8, Handlers: map[string]Handler{
			"slow": func(context.Context, string, []byte) ([]byte, error) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return nil, nil
			},
		}})
		defer b.stop()
		start := time.Now()
		var wg sync.WaitGroup
		for range 80 {
			wg.Go(func() {
				if _, err := a.pool.Ask(t.Context(), "b@b", "slow", nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 8 || time.Since(start) != 10*time.Second {
			t.Fatalf("%d at a time, done after %v", most, time.Since(start))
		}
	})
}
