package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"divan/cluster/wire/simnet"
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
	logs *observer.ObservedLogs

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
	h.cfg.Logger, h.cfg.Network = zap.New(core), h.host
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
	h.town.t.Helper()
	h.host.Kill()
	h.cancel()
	<-h.done
	h.cancel = nil
}

// ask sends a request to the node and returns status and body, like "200 {…}".
func (h *home) ask(method, path, body string) string {
	h.town.t.Helper()
	r, err := http.NewRequestWithContext(h.town.t.Context(), method, fmt.Sprintf("http://10.0.0.%d:5984%s", h.i, path), strings.NewReader(body))
	if err != nil {
		h.town.t.Fatal(err)
	}
	if path != "/_up" { // who asks that has no password
		r.SetBasicAuth("adm", "pass")
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

const secret0 = "COUCHDB_ERLANG_COOKIE=monster"

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

func TestSeedList(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", `201 {"ok":true}`)
		c.want("GET", "/pond", "", `200 {"instance_start_time"`)
		for i := range 20 {
			b.want("PUT", fmt.Sprintf("/pond/frog%d", i), `{"legs":4}`, `201 {"ok":true`)
		}
		for i := range 20 {
			c.want("GET", fmt.Sprintf("/pond/frog%d", i), "", `200 {"_id":"frog`)
		}
		for _, h := range w.homes {
			took := w.eventually("every copy has every document", func() bool {
				copies, docs := h.docs("pond")
				return copies == 2 && docs == 20
			})
			w.t.Logf("%s has everything after %v", h.name, took)
		}
		names := `["divan@10.0.0.1","divan@10.0.0.2","divan@10.0.0.3"]`
		c.soon("GET", "/_membership", "", `200 {"all_nodes":`+names+`,"cluster_nodes":`+names)
		a.want("GET", "/_cluster_setup", "", `200 {"state":"cluster_finished"}`)
		id := a.node.links.id.load()
		if len(id.Nodes) != 3 || id.UUID != c.node.meta.UUID() || id.UUID == "" {
			w.t.Errorf("%+v", id)
		}
	})
}

// A node that is gone: the others go on; it comes back and has everything.
func TestNodeComesBack(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		c.kill()
		a.soon("PUT", "/pond/frog", "{}", "201")
		b.want("GET", "/pond/frog", "", "200")
		b.soon("PUT", "/lake", "", "201")
		for i := range 10 {
			b.want("PUT", fmt.Sprintf("/lake/fish%d", i), "{}", "201")
		}
		c.start()
		c.soon("GET", "/lake/fish3", "", "200")
		took := w.eventually("the node that was away has everything", func() bool {
			_, docs := c.docs("lake")
			_, frogs := c.docs("pond")
			return docs == 10 && frogs == 1
		})
		w.t.Logf("everything is there again after %v", took)

		b.kill()
		c.kill()
		a.soon("PUT", "/pond/toad", "{}", "202")
		a.want("GET", "/pond/toad", "", "200")
		a.want("GET", "/pond/frog", "", "200")
		<-time.After(2 * time.Second)
		start := time.Now()
		a.want("PUT", "/puddle", "", "503")
		if took := time.Since(start); took > 100*time.Millisecond {
			w.t.Errorf("a change of metadata without a majority is refused after %v", took)
		}
		w.start(b, c)
		a.soon("PUT", "/puddle", "", "201")
		c.soon("GET", "/pond/toad", "", "200")
	})
}

// All nodes are stopped and started again.
func TestClusterRestarts(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		a.want("PUT", "/pond/frog", "{}", "201")
		start := time.Now()
		c.end()
		w.t.Logf("one node stops within %v", time.Since(start))
		w.eventually("the others know", func() bool { return !slices.Contains(a.node.links.Members(), c.name) })
		b.end()
		a.end()
		w.start(c, b)
		c.soon("GET", "/pond/frog", "", "200")
		w.start(a)
		a.soon("PUT", "/lake", "", "201")
		for _, h := range w.homes {
			h.soon("GET", "/_up", "", "200")
			h.want("GET", "/pond/frog", "", "200")
		}
	})
}

// Started alone without its fellows, a node still gives what it has.
func TestStartWithoutTheOthers(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		a.want("PUT", "/pond/frog", "{}", "201")
		for _, h := range []*home{c, b, a} {
			h.end()
		}
		a.start()
		took := a.soon("GET", "/pond/frog", "", "200")
		w.t.Logf("documents can be read after %v", took)
		a.soon("PUT", "/pond/toad", "{}", "202")
		a.want("PUT", "/lake", "", "503")
	})
}

// A node whose disk is lost comes back empty and is filled again.
func TestLostDisk(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		for i := range 30 {
			b.want("PUT", fmt.Sprintf("/pond/frog%d", i), `{"legs":4}`, "201")
		}
		c.kill()
		c = w.build(3, seedList, secret0)
		c.start()
		c.soon("GET", "/_up", "", "200")
		took := w.eventually("the lost copies are filled", func() bool {
			copies, docs := c.docs("pond")
			return copies == 2 && docs == 30
		})
		w.t.Logf("rebuilt after %v", took)
		c.soon("GET", "/pond/frog7", "", "200")
		if got := len(c.node.meta.Nodes()); got != 3 {
			w.t.Errorf("%d nodes", got)
		}
	})
}

// Three nodes set up through HTTP, as a new user does it.
func TestSetUp(t *testing.T) {
	inTown(t, func(w *town) {
		var all []*home
		for i := 1; i <= 3; i++ {
			h := w.build(i, "DIVAN_COUCHDB__SINGLE_NODE=false")
			w.start(h)
			h.soon("GET", "/_up", "", "200")
			all = append(all, h)
		}
		a, b, c := all[0], all[1], all[2]
		for _, h := range all {
			h.want("POST", "/_cluster_setup", `{"action":"enable_cluster","bind_address":"0.0.0.0","username":"adm","password":"pass","node_count":3}`, "201")
		}
		for _, h := range all[1:] {
			a.want("POST", "/_cluster_setup", fmt.Sprintf(`{"action":"add_node","host":"10.0.0.%d","port":5984,"username":"adm","password":"pass"}`, h.i), "201")
		}
		a.want("POST", "/_cluster_setup", `{"action":"finish_cluster"}`, "201")
		a.want("GET", "/_cluster_setup", "", `200 {"state":"cluster_finished"}`)
		names := `["divan@10.0.0.1","divan@10.0.0.2","divan@10.0.0.3"]`
		for _, h := range all {
			h.soon("GET", "/_membership", "", `200 {"all_nodes":`+names+`,"cluster_nodes":`+names)
			h.soon("GET", "/_up", "", "200")
		}
		b.want("PUT", "/pond", "", "201")
		c.want("PUT", "/pond/frog", "{}", "201")
		a.want("GET", "/pond/frog", "", "200")
		b.want("GET", "/_node/"+c.name+"/_config/chttpd/bind_address", "", `200 "0.0.0.0"`)

		// Again: nothing changes.
		a.want("POST", "/_cluster_setup", `{"action":"add_node","host":"10.0.0.3","port":5984,"username":"adm","password":"pass"}`, "201")

		// The cluster shares its identity.
		uuid := a.ask("GET", "/_node/_local/_config/couchdb/uuid", "")
		if got := c.ask("GET", "/_node/_local/_config/couchdb/uuid", ""); got != uuid || uuid == "" {
			w.t.Errorf("uuids %s and %s", uuid, got)
		}
		secret := a.ask("GET", "/_node/_local/_config/chttpd_auth/secret", "")
		if got := c.ask("GET", "/_node/_local/_config/chttpd_auth/secret", ""); got != secret {
			w.t.Errorf("secrets %s and %s", secret, got)
		}
	})
}

// Who may not join, and what it is told.
func TestInvitationRefused(t *testing.T) {
	inTown(t, func(w *town) {
		open := "DIVAN_COUCHDB__SINGLE_NODE=false"
		a, b, c := w.build(1, open), w.build(2, open), w.build(3, open, "COUCHDB_ERLANG_COOKIE=another")
		alone := w.build(4)
		d, e := w.build(5, open), w.build(6, open)
		w.start(a, b, c, alone, d, e)
		add := func(h *home) string {
			return a.ask("POST", "/_cluster_setup", fmt.Sprintf(`{"action":"add_node","host":"10.0.0.%d","port":5984,"username":"adm","password":"pass"}`, h.i))
		}
		for _, h := range w.homes {
			h.soon("GET", "/_up", "", "200")
			if h != alone {
				h.want("POST", "/_cluster_setup", `{"action":"enable_cluster","bind_address":"0.0.0.0","username":"adm","password":"pass","node_count":2}`, "201")
			}
		}
		b.want("PUT", "/pond", "", "201")
		if got := add(b); !strings.HasPrefix(got, "400") || !strings.Contains(got, "pond") {
			w.t.Errorf("a node with databases: %s", got)
		}
		b.want("GET", "/pond", "", "200")
		if got := add(c); !strings.HasPrefix(got, "400") || !strings.Contains(got, "secret") {
			w.t.Errorf("another secret: %s", got)
		}
		if got := add(alone); !strings.HasPrefix(got, "400") || !strings.Contains(got, "single_node") {
			w.t.Errorf("a node that stands alone: %s", got)
		}
		d.want("POST", "/_cluster_setup", `{"action":"add_node","host":"10.0.0.6","port":5984,"username":"adm","password":"pass"}`, "201")
		if got := add(e); !strings.HasPrefix(got, "400") || !strings.Contains(got, d.node.meta.UUID()) || !strings.Contains(got, d.name) {
			w.t.Errorf("a member of another cluster: %s", got)
		}
	})
}

// A node with another secret stays out of a seed list's cluster.
func TestWrongSecret(t *testing.T) {
	inTown(t, func(w *town) {
		list := "DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.1,divan@10.0.0.2"
		a, b := w.build(1, list, secret0), w.build(2, list, secret0)
		stranger := w.build(3, list, "COUCHDB_ERLANG_COOKIE=other")
		w.start(a, b, stranger)
		a.soon("GET", "/_up", "", "200")
		b.soon("GET", "/_up", "", "200")
		<-time.After(20 * time.Second)
		stranger.want("GET", "/_up", "", "404")
		if got := len(a.node.meta.Nodes()); got != 2 {
			w.t.Errorf("%d nodes", got)
		}
		if got := a.node.links.Members(); slices.Contains(got, stranger.name) {
			w.t.Errorf("gossip has %v", got)
		}
	})
}

// Two nodes of one name: the second one is not let in.
func TestNameIsTaken(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, c := w.seeded()
		double := w.build(4, seedList, secret0)
		double.cfg.NodeName = c.name
		double.cfg.Environ = append(double.cfg.Environ, "DIVAN_CLUSTER__ADVERTISE=10.0.0.4:5986")
		double.start()
		<-time.After(20 * time.Second)
		double.want("GET", "/_up", "", "404")
		c.want("GET", "/_up", "", "200")
		n, _ := a.node.meta.Node(c.name)
		if address, ok := a.node.links.resolve(c.name); !ok || n.RPC != address || address != "10.0.0.3:5986" {
			w.t.Errorf("%+v is at %s", n, address)
		}
	})
}

// A node is removed, and stays out until its disk is emptied.
func TestNodeIsRemoved(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		c.end()
		var doc struct {
			Rev string `json:"_rev"`
		}
		text := a.ask("GET", "/_node/_local/_nodes/"+c.name, "")
		if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), &doc); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
		a.soon("DELETE", "/_node/_local/_nodes/"+c.name+"?rev="+doc.Rev, "", "200")
		names := func(h *home) []string {
			var out []string
			for _, n := range h.node.meta.Nodes() {
				out = append(out, n.Name)
			}
			return out
		}
		w.eventually("both know", func() bool { return len(names(a)) == 2 && len(names(b)) == 2 })
		c.start()
		<-time.After(20 * time.Second)
		if len(names(a)) != 2 {
			w.t.Errorf("%v", names(a))
		}
		c.kill()
		c = w.build(3, seedList, secret0)
		c.start()
		w.eventually("an empty node joins again", func() bool { return len(names(a)) == 3 })
	})
}

// A healthy start is quiet.
func TestLogOfAStart(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.seeded()
		var lines []observer.LoggedEntry
		for _, e := range a.logs.All() {
			if e.LoggerName == "http" && strings.HasPrefix(e.Message, "request") {
				continue // of this test
			}
			lines = append(lines, e)
			if e.Level >= zapcore.ErrorLevel {
				w.t.Errorf("%s: %s: %v", e.LoggerName, e.Message, e.ContextMap())
			}
		}
		if len(lines) > 15 {
			for _, e := range lines {
				w.t.Logf("%s %s: %s %v", e.Level, e.LoggerName, e.Message, e.ContextMap())
			}
			w.t.Errorf("%d lines", len(lines))
		}
	})
}
