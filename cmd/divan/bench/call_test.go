package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"
)

// asConstant makes the test binary be the constant handler.
const asConstant = "TEST_AS_CONSTANT"

func TestMain(m *testing.M) {
	if os.Getenv(asConstant) != "" {
		size, _ := strconv.Atoi(os.Args[len(os.Args)-1])
		if err := ServeConstant(context.Background(), os.Stdin, os.Stdout, size); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// these two of fasthttp's look for something to close every now and then, and
	// end when there is nothing more
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// load is some clients and the server that they ask.
type load struct {
	*clients
	server *httptest.Server
	conns  atomic.Int64
	asked  atomic.Int64 // requests that came
	work   client
	enough int64 // answers and failures after which the clients end
}

func newLoad(t *testing.T, handler http.HandlerFunc) *load {
	t.Helper()
	l := &load{enough: 50, work: func(a *call, _ int64) (int64, error) {
		return 1, a.do(fasthttp.MethodPut, []byte("/x"), []byte("question"), http.StatusOK)
	}}
	l.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.asked.Add(1)
		handler(w, r)
	}))
	l.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			l.conns.Add(1)
		}
	}
	l.server.Start()
	t.Cleanup(l.server.Close)
	b, err := newBench(Config{URL: l.server.URL, Clients: 3, Duration: patience})
	if err != nil {
		t.Fatal(err)
	}
	b.clients.patience = patience
	l.clients = b.clients
	t.Cleanup(b.server.client.CloseIdleConnections)
	return l
}

// run asks until there is enough of answers and failures.
func (l *load) run(t *testing.T) (*recorder, error) {
	t.Helper()
	r := newRecorder(workload{}, Config{})
	err := l.timed(t.Context(), r, func(int) client {
		return func(a *call, i int64) (int64, error) {
			if r.count.Load()+r.errors.Load() >= l.enough {
				return 0, io.EOF
			}
			return l.work(a, i)
		}
	})
	if took := time.Since(r.start); took >= patience {
		t.Errorf("it took %v", took)
	}
	return r, err
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

func TestClientsGetTheirAnswers(t *testing.T) {
	big := strings.Repeat("0123456789abcde\n", 1<<17) // more than is read at once
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		body    string
		reused  bool // the connections
	}{
		"length": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "answer\n") }, "answer\n", true},
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			fmt.Fprint(w, big)
		}, big, true},
		"large and chunked": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, big) }, big, true},
		"chunked": {func(w http.ResponseWriter, _ *http.Request) {
			for _, piece := range []string{"ans", "wer"} {
				fmt.Fprint(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
		}, "answer", true},
		"close": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "answer")
		}, "answer", false},
		"until the end": {raw("HTTP/1.1 200 OK\r\n\r\nanswer"), "answer", false},
		"nothing":       {func(http.ResponseWriter, *http.Request) {}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t, c.handler)
			ask := l.work
			l.work = func(a *call, i int64) (int64, error) {
				done, err := ask(a, i)
				if a.body.size != int64(len(c.body)) || a.body.lines != int64(strings.Count(c.body, "\n")) {
					t.Errorf("%d bytes and %d lines came", a.body.size, a.body.lines)
				}
				return done, err
			}
			r, err := l.run(t)
			if err != nil || r.errors.Load() > 0 || r.count.Load() < l.enough {
				t.Errorf("%d answers, %d failures: %v", r.count.Load(), r.errors.Load(), err)
			}
			if got := r.result(); got.P50 <= 0 || got.Max > patience.Seconds()*1000 {
				t.Errorf("the latencies are %+v", got)
			}
			if conns := l.conns.Load(); c.reused && conns > int64(l.number) || !c.reused && conns < l.enough {
				t.Errorf("%d connections", conns)
			}
		})
	}
}

func TestClientsCountFailures(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		message string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no space "+strings.Repeat("x", 1000), http.StatusInsufficientStorage)
		}, "status 507: no space "},
		"malformed":         {raw("hello\r\n"), "hello"},
		"nothing":           {raw(""), fasthttp.ErrConnectionClosed.Error()},
		"truncated":         {raw("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nans"), "unexpected EOF"},
		"large, truncated":  {raw("HTTP/1.1 200 OK\r\nContent-Length: 7000000\r\n\r\nans"), "unexpected EOF"},
		"chunks, truncated": {raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nans"), "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoad(t, c.handler)
			r, err := l.run(t)
			if r.count.Load() > 0 || r.errors.Load() < l.enough || err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%d answers, %d failures: %v", r.count.Load(), r.errors.Load(), err)
			}
			if asked := l.asked.Load(); asked > r.errors.Load() { // none was repeated
				t.Errorf("%d requests for %d failures", asked, r.errors.Load())
			}
		})
	}
}

func TestClientsGiveUpSlowAnswers(t *testing.T) {
	over := make(chan struct{})
	l := newLoad(t, func(http.ResponseWriter, *http.Request) { <-over })
	l.patience, l.enough = 20*time.Millisecond, 6
	r, err := l.run(t)
	close(over)
	if r.count.Load() > 0 || !errors.Is(err, fasthttp.ErrTimeout) {
		t.Errorf("%d answers: %v", r.count.Load(), err)
	}
}

func TestClientsDoNotWaitForEachOther(t *testing.T) {
	var here sync.WaitGroup
	here.Add(3)
	var arrived atomic.Int64
	l := newLoad(t, func(http.ResponseWriter, *http.Request) {
		if arrived.Add(1) <= 3 { // the first three are answered when all have come
			here.Done()
			here.Wait()
		}
	})
	if r, err := l.run(t); err != nil || r.count.Load() < l.enough {
		t.Errorf("%d answers: %v", r.count.Load(), err)
	}
}

func TestClientsUpload(t *testing.T) {
	const size = 8 << 20 // more than a socket takes at once
	l := newLoad(t, func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n != size || r.ContentLength != size || err != nil {
			http.Error(w, fmt.Sprint(n, r.ContentLength, err), http.StatusBadRequest)
		}
	})
	l.enough = 6
	l.work = func(a *call, _ int64) (int64, error) {
		return size, a.upload([]byte("/x"), newNoise(size), size, http.StatusOK)
	}
	if r, err := l.run(t); err != nil || r.errors.Load() > 0 || r.count.Load() < size {
		t.Errorf("%d bytes, %d failures: %v", r.count.Load(), r.errors.Load(), err)
	}
}

func TestClientsEndWithTheServer(t *testing.T) {
	l := newLoad(t, func(http.ResponseWriter, *http.Request) {})
	l.enough = 1 << 40 // the failures end the clients
	ask := l.work
	var once sync.Once
	l.work = func(a *call, i int64) (int64, error) {
		done, err := ask(a, i)
		once.Do(func() {
			_ = l.server.Listener.Close()
			l.server.CloseClientConnections()
		})
		return done, err
	}
	r, err := l.run(t)
	if r.count.Load() == 0 || r.errors.Load() <= maxErrors || err != nil {
		t.Errorf("%d answers, %d failures: %v", r.count.Load(), r.errors.Load(), err)
	}
}
