package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(8) // the servers are in this process, and a loop keeps a processor to itself
	// these two of fasthttp's look for something to close every now and then, and
	// end when there is nothing more
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// drivers are the ways to drive a crew: that of this system and that of others.
var drivers = map[string]func(*crew, context.Context) error{"run": (*crew).run, "plain": (*crew).plain}

// fleet is some lanes and the server that they ask.
type fleet struct {
	server  *httptest.Server
	lanes   int
	request string // headers and body that follow the first line and Host
	judge   func(a *answer) (int64, error)
	enough  int64 // answers and failures after which the test is over
	slow    time.Duration
	conns   atomic.Int64
}

func newFleet(t *testing.T, handler http.HandlerFunc) *fleet {
	t.Helper()
	f := &fleet{lanes: 3, request: "\r\n", enough: 50, slow: patience, judge: func(a *answer) (int64, error) {
		return 1, a.want(http.StatusOK)
	}}
	f.server = httptest.NewUnstartedServer(handler)
	f.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			f.conns.Add(1)
		}
	}
	f.server.Start()
	t.Cleanup(f.server.Close)
	return f
}

// sail runs one lane per crew until there is enough of answers and failures, and
// returns the counts and the first error.
func (f *fleet) sail(t *testing.T, run func(*crew, context.Context) error) (*recorder, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	addr, ok := f.server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("the server does not listen on TCP")
	}
	r := newRecorder(workload{}, Config{})
	to := target{addr, ""}
	var wg sync.WaitGroup
	crews := make([]*crew, f.lanes)
	for i := range crews {
		c := &crew{to: to, r: r, latency: histogram(), patience: f.slow}
		c.add(script{
			next: func(dst []byte) []byte {
				if r.count.Load()+r.errors.Load() >= f.enough {
					cancel()
				}
				return append(append(dst, "PUT /x HTTP/1.1\r\nHost: x\r\n"...), f.request...)
			},
			judge: f.judge,
		})
		crews[i] = c
		wg.Go(func() {
			if err := run(c, ctx); err != nil {
				t.Errorf("the loop failed: %v", err)
			}
		})
	}
	wg.Wait()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("not enough happened in time")
	}
	var first error
	for _, c := range crews {
		first = errors.Join(first, c.first)
		r.merge(c.latency)
	}
	return r, first
}

// raw is a handler that writes those bytes and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
}

func TestLanesGetTheirAnswers(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		body    string
		reused  bool // the connections
	}{
		"length": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "answer") }, "answer", true},
		"large":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, big) }, big[:200], true},
		"chunked": {func(w http.ResponseWriter, _ *http.Request) {
			for _, piece := range []string{"ans", "wer"} {
				fmt.Fprint(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
			w.Header().Set(http.TrailerPrefix+"X", "y")
		}, "answer", true},
		"close": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "answer")
		}, "answer", false},
		"until the end": {raw("HTTP/1.1 200 OK\r\n\r\nanswer"), "answer", false},
	} {
		for driver, run := range drivers {
			t.Run(name+"/"+driver, func(t *testing.T) {
				f := newFleet(t, c.handler)
				f.judge = func(a *answer) (int64, error) {
					if string(a.body) != c.body {
						t.Errorf("the body is %q", a.body)
					}
					return 1, a.want(http.StatusOK)
				}
				r, err := f.sail(t, run)
				if err != nil || r.errors.Load() > 0 || r.count.Load() < f.enough {
					t.Errorf("%d answers, %d failures: %v", r.count.Load(), r.errors.Load(), err)
				}
				if got, err := r.result(); err != nil || got.P50 <= 0 || got.Max > patience.Seconds()*1000 {
					t.Errorf("the latencies are %+v", got)
				}
				if conns := f.conns.Load(); c.reused && conns > int64(f.lanes) || !c.reused && conns < f.enough {
					t.Errorf("%d connections", conns)
				}
			})
		}
	}
}

func TestLanesCountFailures(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		message string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no room", http.StatusInsufficientStorage)
		}, "status 507: no room"},
		"malformed": {raw("hello\r\n"), `malformed answer: it begins with "hello"`},
		"truncated": {raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nans"), "the connection ended within the answer"},
		"more":      {raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nanswer"), "more than an answer came"},
	} {
		for driver, run := range drivers {
			t.Run(name+"/"+driver, func(t *testing.T) {
				f := newFleet(t, c.handler)
				r, err := f.sail(t, run)
				if r.count.Load() > 0 || r.errors.Load() < f.enough || err == nil || !strings.Contains(err.Error(), c.message) {
					t.Errorf("%d answers, %d failures: %v", r.count.Load(), r.errors.Load(), err)
				}
			})
		}
	}
}

func TestLanesGiveUpSlowAnswers(t *testing.T) {
	for driver, run := range drivers {
		t.Run(driver, func(t *testing.T) {
			over := make(chan struct{})
			f := newFleet(t, func(http.ResponseWriter, *http.Request) { <-over })
			f.slow, f.enough = 20*time.Millisecond, 6
			r, err := f.sail(t, run)
			close(over)
			var timeout net.Error
			if r.count.Load() > 0 || !errors.Is(err, errSlow) && !errors.As(err, &timeout) {
				t.Errorf("%d answers: %v", r.count.Load(), err)
			}
		})
	}
}

func TestLanesDoNotWaitForEachOther(t *testing.T) {
	for driver, run := range drivers {
		t.Run(driver, func(t *testing.T) {
			var here sync.WaitGroup
			here.Add(3)
			var arrived atomic.Int64
			f := newFleet(t, func(http.ResponseWriter, *http.Request) {
				if arrived.Add(1) <= 3 { // the first three are answered when all have come
					here.Done()
					here.Wait()
				}
			})
			if r, err := f.sail(t, run); err != nil || r.count.Load() < f.enough {
				t.Errorf("%d answers: %v", r.count.Load(), err)
			}
		})
	}
}

func TestLanesSendLargeRequests(t *testing.T) {
	for driver, run := range drivers {
		t.Run(driver, func(t *testing.T) {
			const size = 8 << 20 // more than a socket takes at once
			f := newFleet(t, func(w http.ResponseWriter, r *http.Request) {
				if n, err := io.Copy(io.Discard, r.Body); n != size || err != nil {
					http.Error(w, fmt.Sprint(n, err), http.StatusBadRequest)
				}
			})
			f.enough, f.request = 6, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
			if r, err := f.sail(t, run); err != nil || r.count.Load() < f.enough {
				t.Errorf("%d answers: %v", r.count.Load(), err)
			}
		})
	}
}

func TestLanesEndWithTheServer(t *testing.T) {
	for driver, run := range drivers {
		t.Run(driver, func(t *testing.T) {
			var f *fleet
			var once sync.Once
			f = newFleet(t, func(http.ResponseWriter, *http.Request) {})
			f.enough = 1 << 40 // the failures end the lanes
			f.judge = func(a *answer) (int64, error) {
				once.Do(func() {
					_ = f.server.Listener.Close()
					f.server.CloseClientConnections()
				})
				return 1, a.want(http.StatusOK)
			}
			r, err := f.sail(t, run)
			if r.count.Load() == 0 || r.errors.Load() <= maxErrors || err == nil {
				t.Errorf("%d answers, %d failures: %v", r.count.Load(), r.errors.Load(), err)
			}
		})
	}
}
