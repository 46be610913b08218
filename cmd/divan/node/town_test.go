package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/wire/simnet"
	"divan/storage/storagetest"
)

// town is nodes in one bubble, each on a host of its own.
type town struct {
	t      *testing.T
	net    *simnet.Network
	client *http.Client
	homes  map[int]*home
}

// home is one node: what survives it, and the one that runs.
type home struct {
	town *town
	i    int
	name string
	cfg  Config
	host *simnet.Host
	disk *disk // nil: one in memory that loses nothing
	logs *observer.ObservedLogs
	tap  *wiretap // nil: none

	killed bool // at least once

	node   *Node
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func newTown(t *testing.T) *town {
	t.Helper()
	w := &town{t: t, net: simnet.New(1), homes: map[int]*home{}}
	w.net.SetStandard(simnet.Link{Latency: time.Millisecond})
	client, err := w.net.Boot("10.0.0.100")
	if err != nil {
		t.Fatal(err)
	}
	w.client = &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return client.Dial(ctx, address)
		}},
	}
	return w
}

// someOf returns all cases of a test, and in a short run n of them by chance: under the
// race detector a town of nodes takes long.
func someOf[T any](cases []T, n int) []T {
	if !testing.Short() {
		return cases
	}
	rand.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
	return cases[:min(n, len(cases))]
}

// inTown runs a test of several nodes. What libraries have still under way at
// the end gets time to finish.
func inTown(t *testing.T, test func(w *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		defer func() {
			for _, h := range w.homes {
				h.end()
			}
			w.client.CloseIdleConnections()
			<-time.After(time.Minute)
		}()
		test(w)
	})
}

func nodeName(i int) string { return fmt.Sprintf("divan@10.0.0.%d", i) }

// build makes an empty home for a node.
func (w *town) build(i int, environ ...string) *home {
	w.t.Helper()
	h := &home{town: w, i: i, name: nodeName(i)}
	stores := memoryStores()
	h.cfg = Config{
		DataDir: "data", FS: vfs.NewMem(), Meta: &stores, Version: "test",
		Environ: settings(append([]string{"NODENAME=" + h.name}, environ...)...),
	}
	w.homes[i] = h
	return h
}

// start starts nodes that are not running.
func (w *town) start(homes ...*home) {
	w.t.Helper()
	for _, h := range homes {
		h.start()
	}
}

func (h *home) start() {
	h.town.t.Helper()
	if h.host != nil {
		h.host.Kill()
	}
	var err error
	if h.host, err = h.town.net.Boot(fmt.Sprintf("10.0.0.%d", h.i)); err != nil {
		h.town.t.Fatal(err)
	}
	h.live()
}

// live runs the node, again when it asks for that.
func (h *home) live() {
	h.town.t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	h.logs = logs
	h.cfg.Logger, h.cfg.Network = zap.New(zapcore.NewTee(core, storagetest.FailOnPanics(h.town.t).Core())), h.host
	if h.tap != nil {
		h.cfg.Network = h.tap.on(h.host)
	}
	h.build()
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.WithoutCancel(h.town.t.Context()))
	h.done = make(chan struct{})
	go func() {
		defer close(h.done)
		for {
			h.err = h.node.Run(ctx)
			if !errors.Is(h.err, ErrRestart) {
				return
			}
			h.build() //nolint:contextcheck // the test's own
		}
	}()
}

func (h *home) build() {
	h.town.t.Helper()
	l, err := h.host.Listen(h.town.t.Context(), ":5984")
	if err != nil {
		h.town.t.Error(err)
		return
	}
	h.cfg.Listener = l
	n, err := New(h.town.t.Context(), h.cfg)
	if err != nil {
		h.town.t.Error(h.name, err)
		return
	}
	h.node = n
}

// end stops the node, which must not fail.
func (h *home) end() {
	h.town.t.Helper()
	if h.cancel == nil {
		return
	}
	h.cancel()
	<-h.done
	if h.err != nil {
		h.town.t.Errorf("%s: %v", h.name, h.err)
	}
	h.cancel = nil
	h.host.Kill()
}

// kill ends the node as the end of its process would.
func (h *home) kill() {
	h.killed = true
	h.town.t.Helper()
	h.host.Kill()
	h.cancel()
	<-h.done
	h.cancel = nil
}

// ask sends a request to the node and returns status and body, like "200 {…}".
func (h *home) ask(method, path, body string) string {
	h.town.t.Helper()
	return h.as("adm", method, path, body)
}

// as is ask for a user: the administrator, or one whose password is "pw".
func (h *home) as(user, method, path, body string) string {
	h.town.t.Helper()
	r, err := http.NewRequestWithContext(h.town.t.Context(), method, fmt.Sprintf("http://10.0.0.%d:5984%s", h.i, path), strings.NewReader(body))
	if err != nil {
		h.town.t.Fatal(err)
	}
	if path != "/_up" { // who asks that has no password
		password := "pw"
		if user == "adm" {
			password = "pass"
		}
		r.SetBasicAuth(user, password)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := h.town.client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(res.StatusCode, " ", strings.TrimSpace(string(text)))
}

// want sends a request and looks for the beginning of "status body".
func (h *home) want(method, path, body, prefix string) {
	h.town.t.Helper()
	if got := h.ask(method, path, body); !strings.HasPrefix(got, prefix) {
		h.town.t.Errorf("%s: %s %s: %s, want %s", h.name, method, path, got, prefix)
	}
}

// soon asks until the answer begins as wanted, for a minute at most, and
// returns how long that took.
func (h *home) soon(method, path, body, prefix string) time.Duration {
	h.town.t.Helper()
	start := time.Now()
	for {
		got := h.ask(method, path, body)
		if strings.HasPrefix(got, prefix) {
			return time.Since(start)
		}
		if time.Since(start) > time.Minute {
			h.town.t.Fatalf("%s: %s %s: %s, want %s", h.name, method, path, got, prefix)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// eventually waits until ok holds, for two minutes at most.
func (w *town) eventually(what string, ok func() bool) time.Duration {
	w.t.Helper()
	start := time.Now()
	for !ok() {
		if time.Since(start) > 2*time.Minute {
			w.t.Fatalf("in vain waited until %s", what)
		}
		<-time.After(50 * time.Millisecond)
	}
	return time.Since(start)
}

// docs counts the documents in the copies of a database that the node holds.
func (h *home) docs(db string) (copies int, docs uint64) {
	h.town.t.Helper()
	m, ok := h.node.meta.Database(db)
	if !ok {
		return 0, 0
	}
	for _, name := range m.CopiesOn(h.name) {
		info, err := h.node.local.Info(h.town.t.Context(), name)
		if err != nil {
			continue
		}
		copies++
		docs += info.Live
	}
	return copies, docs
}

// openToAll lets the state of the set-up be that of a node that others reach.
const openToAll = "DIVAN_CHTTPD__BIND_ADDRESS=0.0.0.0"

const seedList = "DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.1,divan@10.0.0.2,divan@10.0.0.3"

const secret0 = "COUCHDB_ERLANG_COOKIE=monsters-of-the-deep"

// seeded starts three nodes that find each other by a seed list.
func (w *town) seeded() (a, b, c *home) {
	w.t.Helper()
	a, b, c = w.build(1, seedList, secret0, openToAll), w.build(2, seedList, secret0, openToAll), w.build(3, seedList, secret0, openToAll)
	w.start(a, b, c)
	for _, h := range []*home{a, b, c} {
		h.soon("GET", "/_up", "", `200 {"status":"ok"`)
		h.soon("GET", "/_all_dbs", "", `200 ["_global_changes","_replicator","_users"]`)
	}
	took := w.eventually("all vote", func() bool { return len(a.node.meta.Voters()) == 3 })
	w.t.Logf("all vote after %v more", took)
	return a, b, c
}
