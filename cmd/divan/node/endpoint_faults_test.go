package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/replicator/protocol"
	"divan/replicator/remote"
	"divan/replicator/spec"
)

// trouble is what happens to requests on their way.
type trouble struct {
	mu struct {
		sync.Mutex
		random *rand.Rand
		count  map[string]int
		dialed int
	}
}

// happens reports whether something happens now, once in so many times.
func (f *trouble) happens(what string, once int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.random.IntN(once) > 0 {
		return false
	}
	f.mu.count[what]++
	return true
}

// dial makes a connection that breaks after some bytes, mostly many.
func (f *trouble) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	left := 20_000
	if f.mu.dialed++; f.mu.dialed%2 == 0 { // of few connections one has to break
		left += f.mu.random.IntN(3 << 20)
	}
	return &brittle{Conn: c, f: f, left: left}, nil
}

// brittle is a connection that breaks in the middle of an answer.
type brittle struct {
	net.Conn
	f    *trouble
	left int
}

func (b *brittle) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.f.happens("cut", 1)
		return 0, errors.Join(errors.New("cut"), b.Close())
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// proxy stands before a node and refuses requests now and then.
func (f *trouble) proxy(t *testing.T, h *testNode) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse("http://" + h.node.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	through := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, ErrorLog: log.New(io.Discard, "", 0),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := &http.Server{ReadHeaderTimeout: patience, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case f.happens("500", 25):
			w.WriteHeader(http.StatusInternalServerError)
		case f.happens("429", 25):
			w.WriteHeader(http.StatusTooManyRequests)
		case f.happens("lost answer", 40): // done, but the client does not hear of it
			r.Body = http.MaxBytesReader(w, r.Body, 1<<30)
			through.ServeHTTP(&deaf{header: http.Header{}}, r)
			panic(http.ErrAbortHandler)
		default:
			through.ServeHTTP(w, r)
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
		transport.CloseIdleConnections()
	})
	return l.Addr().String()
}

// deaf swallows an answer.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) Write(p []byte) (int, error) { return len(p), nil }
func (d *deaf) WriteHeader(int)             {}

// A replication over connections that break and servers that refuse and
// forget requests comes to its end, and both sides hold the same.
func TestRemoteFaults(t *testing.T) {
	h := start(t, inMemory(t))
	h.fill("one")
	for k := range 10 {
		docs := ""
		for i := range 200 {
			docs += fmt.Sprintf(`,{"_id":"more%d-%d","pad":"%0600d","_attachments":{"a.txt":{"content_type":"text/plain","data":"aGVsbG8%d"}}}`, k, i, i, k)
		}
		h.want("POST", "/one/_bulk_docs", `{"docs":[`+docs[1:]+`]}`, "201")
	}
	f := &trouble{}
	f.mu.random, f.mu.count = rand.New(rand.NewPCG(1, 2)), map[string]int{}
	network, err := remote.NewNetwork(remote.NetworkOptions{Dial: f.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(network.Close)
	address := f.proxy(t, h)
	options := spec.Options{
		UseCheckpoints: true, CheckpointInterval: 50 * time.Millisecond, UseBulkGet: true, Workers: 2, BatchSize: 50,
		Connections: 4, ConnectionTimeout: patience, Retries: 10,
	}
	open := func(db string) *remote.Database {
		d, err := remote.New(remote.Options{
			Network: network, Options: options, UserAgent: "test",
			Address: spec.Address{URL: "http://" + address + "/" + db + "/", Username: "adm", Password: "pass"},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	s := &spec.Spec{Options: options, CreateTarget: true}
	run := protocol.Options{Spec: s, ID: spec.ID{Base: "0123"}, Source: open("one"), Target: open("two"), Logger: zap.NewNop()}
	if _, err := protocol.Run(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if !sameLines(h.leaves("one"), h.leaves("two")) {
		t.Error("the sides differ")
	}
	for _, what := range []string{"cut", "500", "429", "lost answer"} {
		if f.mu.count[what] == 0 {
			t.Errorf("there was no %s: %v", what, f.mu.count)
		}
	}
}
