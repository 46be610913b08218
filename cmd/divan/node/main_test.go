package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// settings makes an environment: cheap password hashes, an administrator adm
// with the password pass, and more.
func settings(more ...string) []string {
	return append([]string{"DIVAN_CHTTPD_AUTH__ITERATIONS=1", "COUCHDB_USER=adm", "COUCHDB_PASSWORD=pass"}, more...)
}

// testNode is a node that runs in this process.
type testNode struct {
	t      *testing.T
	node   *Node
	client *http.Client
	logs   *observer.ObservedLogs
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run, once done is closed
}

// inMemory is a node that leaves nothing behind, on a listener of its own.
func inMemory(t *testing.T, environ ...string) Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return Config{DataDir: "data", FS: vfs.NewMem(), MetaInMemory: true, Listener: l, Environ: settings(environ...)}
}

// onDisk is a node in a directory that listens where it may.
func onDisk(dir string, environ ...string) Config {
	return Config{DataDir: dir, Listen: "127.0.0.1:0", Environ: settings(environ...)}
}

// build makes a node whose log is looked at.
func build(t *testing.T, cfg Config) *testNode {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	cfg.Logger = zap.New(core)
	h := buildAs(t, cfg)
	h.logs = logs
	return h
}

// buildAs makes a node of just that configuration.
func buildAs(t *testing.T, cfg Config) *testNode {
	t.Helper()
	n, err := New(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &testNode{t: t, node: n, done: make(chan struct{}), client: &http.Client{
		Transport: &http.Transport{}, Timeout: patience,
	}}
}

// run runs the node until stop or the end of the test.
func (h *testNode) run() {
	h.t.Helper()
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.Background())
	h.t.Cleanup(func() { _ = h.stop() })
	go func() {
		defer close(h.done)
		h.err = h.node.Run(ctx)
	}()
	select {
	case <-h.node.Ready():
	case <-h.done:
		h.t.Fatalf("the node ended: %v", h.err)
	case <-time.After(patience):
		h.t.Fatal("the node is not ready in time")
	}
}

func start(t *testing.T, cfg Config) *testNode {
	t.Helper()
	h := build(t, cfg)
	h.run()
	return h
}

// wait waits for the end of Run.
func (h *testNode) wait() error {
	h.t.Helper()
	select {
	case <-h.done:
		return h.err
	case <-time.After(patience):
		h.t.Fatal("the node does not end in time")
		return nil
	}
}

func (h *testNode) stop() error {
	h.t.Helper()
	h.cancel()
	h.client.CloseIdleConnections()
	return h.wait()
}

// end stops the node, which must not fail.
func (h *testNode) end() {
	h.t.Helper()
	if err := h.stop(); err != nil {
		h.t.Errorf("Run: %v", err)
	}
}

func (h *testNode) url(path string) string {
	return fmt.Sprintf("http://adm:pass@%s%s", h.node.Addr(), path)
}

func (h *testNode) request(method, url, body string) *http.Request {
	h.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// ask sends a request and returns status and body, like "200 {…}".
func (h *testNode) ask(method, path, body string) string {
	h.t.Helper()
	answer, err := h.try(method, h.url(path), body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer
}

func (h *testNode) try(method, url, body string) (string, error) {
	res, err := h.client.Do(h.request(method, url, body))
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return fmt.Sprint(res.StatusCode, " ", strings.TrimSpace(string(text))), err
}

// want sends a request and looks for the beginning of "status body".
func (h *testNode) want(method, path, body, prefix string) {
	h.t.Helper()
	if got := h.ask(method, path, body); !strings.HasPrefix(got, prefix) {
		h.t.Errorf("%s %s: %s, want %s", method, path, got, prefix)
	}
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain waited until %s", what)
		}
		<-tick.C
	}
}

// listening returns the address of the latest listener of a kind ("HTTP",
// "HTTPS", "metrics"), empty when there was none after the first n lines of
// the log.
func (h *testNode) listening(kind string, n int) string {
	address := ""
	for _, e := range h.logs.All()[n:] {
		if e.Message == "listening" && e.ContextMap()["for"] == kind {
			address, _ = e.ContextMap()["address"].(string)
		}
	}
	return address
}

// logged reports whether a line was logged after the first n.
func (h *testNode) logged(n int, message string) bool {
	for _, e := range h.logs.All()[n:] {
		if strings.Contains(e.Message, message) {
			return true
		}
	}
	return false
}
