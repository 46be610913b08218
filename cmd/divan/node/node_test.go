package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestNode(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("GET", "/_up", "", `200 {"status":"ok"`)
	h.want("GET", "/_all_dbs", "", `200 ["_global_changes","_replicator","_users"]`)
	h.want("PUT", "/pond", "", `201 {"ok":true}`)
	h.want("PUT", "/pond/frog", `{"legs":4}`, `201 {"ok":true,"id":"frog"`)
	h.want("GET", "/pond/_changes", "", `200 {"results":[`)
	h.want("GET", "/_node/_local/_stats/couchdb/open_databases", "", `200 {"value":`)
	h.want("GET", "/_node/_local", "", `200 {"name":"divan@127.0.0.1"}`)
	h.want("POST", "/pond/_compact", "", `202 {"ok":true}`)
	h.want("GET", "/_active_tasks", "", `200 [`)
	h.end()
	if _, err := h.try("GET", h.url("/_up"), ""); err == nil {
		t.Error("a stopped node answers")
	}
}

// TestAlone is about who becomes a server by itself.
func TestAlone(t *testing.T) {
	const port = "DIVAN_CLUSTER__PORT=0"
	for _, tc := range []struct {
		name, setting, state, databases string
	}{
		{"nothing said", "X=", "single_node_enabled", `["_global_changes","_replicator","_users"]`},
		{"alone", "DIVAN_COUCHDB__SINGLE_NODE=true", "single_node_enabled", `["_global_changes","_replicator","_users"]`},
		{"not alone", "DIVAN_COUCHDB__SINGLE_NODE=false " + port, "cluster_disabled", `[]`},
		{"a secret", "COUCHDB_ERLANG_COOKIE=monsters-of-the-deep " + port, "cluster_disabled", `[]`},
		{"a cluster port", port, "cluster_disabled", `[]`},
		{"alone in spite of it", "DIVAN_COUCHDB__SINGLE_NODE=true " + port, "single_node_enabled", `["_global_changes","_replicator","_users"]`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := start(t, inMemory(t, strings.Fields(tc.setting)...))
			if alone := tc.databases != "[]"; alone != (h.node.links == nil) {
				t.Errorf("a cluster port: %v", !alone)
			}
			h.want("GET", "/_cluster_setup", "", `200 {"state":"`+tc.state+`"}`)
			h.want("GET", "/_all_dbs", "", "200 "+tc.databases)
			if tc.databases == "[]" {
				h.want("POST", "/_cluster_setup", `{"action":"enable_single_node"}`, `201 {"ok":true}`)
				h.want("GET", "/_cluster_setup", "", `200 {"state":"single_node_enabled"}`)
				h.want("GET", "/_all_dbs", "", `200 ["_global_changes","_replicator","_users"]`)
			}
			h.end()
		})
	}
}

// TestNewFails looks for a reason of one line, and for nothing left behind.
func TestNewFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, want string
		cfg        Config
	}{
		{"no directory", "a data directory is needed", Config{}},
		{"port", `the address to listen on must be HOST:PORT, not "127.0.0.1:http"`, Config{DataDir: dir, Listen: "127.0.0.1:http"}},
		{"no port", `the address to listen on must be HOST:PORT, not "127.0.0.1"`, Config{DataDir: dir, Listen: "127.0.0.1"}},
		{"large port", `the address to listen on must be HOST:PORT, not ":70000"`, Config{DataDir: dir, Listen: ":70000"}},
		{"cluster port", `the address to listen on must be HOST:PORT, not "5986"`, Config{DataDir: dir, ClusterAddress: "5986"}},
		{"name", `the name of a node must be NAME@HOST, not "node"`, Config{DataDir: dir, NodeName: "node"}},
		{
			"no secret", "nodes with a seed list need the same secret: set it in section [cluster] or as COUCHDB_ERLANG_COOKIE",
			Config{DataDir: dir, Environ: []string{"DIVAN_CLUSTER__SEEDLIST=divan@a"}},
		},
		{
			"short secret", "[cluster] secret (COUCHDB_ERLANG_COOKIE) has 7 characters. It needs at least 16 characters that nobody guesses, " +
				"as `openssl rand -hex 16` makes them. Set the same on all nodes and start them again",
			Config{DataDir: dir, Environ: []string{"COUCHDB_ERLANG_COOKIE=monster"}},
		},
		{
			"half of TLS", "TLS between nodes needs tls_cert_file, tls_key_file and tls_ca_file in section [cluster]",
			Config{DataDir: dir, Environ: []string{"DIVAN_COUCHDB__SINGLE_NODE=false", "DIVAN_CLUSTER__TLS_CA_FILE=ca.pem"}},
		},
		{"admin", "an administrator must be given as NAME:PASSWORD", Config{DataDir: dir, Admin: "adm"}},
		{"admin without password", "an administrator must be given as NAME:PASSWORD", Config{DataDir: dir, Admin: "adm:"}},
		{
			"missing file", "read configuration: stat " + dir + "/none.ini: no such file or directory",
			Config{DataDir: dir, ConfigFiles: []string{dir + "/none.ini"}},
		},
		{"data directory is a file", "make data directory: mkdir " + file + ": not a directory", Config{DataDir: file}},
		{
			"log", "open the log: open " + dir + "/none/log: no such file or directory",
			Config{DataDir: dir, Environ: []string{"DIVAN_LOG__WRITER=file", "DIVAN_LOG__FILE=" + dir + "/none/log"}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, err := New(context.Background(), tc.cfg)
			if err == nil {
				t.Fatalf("no error; Close: %v", n.Close())
			}
			if err.Error() != tc.want {
				t.Errorf("got %q, want %q", err, tc.want)
			}
		})
	}
}

// TestDirectoryInUse looks whether a node keeps others out, and gives its
// directory back: after Run, after Close, after a start that failed.
func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	h := start(t, onDisk(dir))
	if _, err := New(context.Background(), onDisk(dir)); err == nil || !strings.Contains(err.Error(), dir+" is in use") {
		t.Errorf("a second node on the directory: %v", err)
	}
	h.want("PUT", "/pond", "", "201")
	h.end()
	if err := build(t, onDisk(dir)).node.Close(); err != nil {
		t.Error(err)
	}
	again := start(t, onDisk(dir))
	again.want("GET", "/pond", "", `200 {"instance_start_time"`)
	again.end()
}

// TestCloseGivesListenerBack closes a node that never ran.
func TestCloseGivesListenerBack(t *testing.T) {
	cfg := inMemory(t)
	if err := build(t, cfg).node.Close(); err != nil {
		t.Error(err)
	}
	if _, err := cfg.Listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}

// TestRunFails stops at one part after the other; every time the error names
// the part, and what ran before is stopped and closed.
func TestRunFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	for _, tc := range []struct {
		name, want string
		spoil      func(t *testing.T, cfg *Config)
	}{
		{"metadata", "metadata: open metadata: mkdir DIR/meta: not a directory", func(t *testing.T, cfg *Config) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(cfg.DataDir, "meta"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"name", `metadata: the metadata belongs to node "divan@127.0.0.1", not to "other@127.0.0.1": a node keeps its name`, func(t *testing.T, cfg *Config) {
			t.Helper()
			start(t, *cfg).end()
			cfg.Environ = append(cfg.Environ, "NODENAME=other@127.0.0.1")
		}},
		{"databases", "cluster: create _users: ", func(t *testing.T, cfg *Config) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(cfg.DataDir, "shards"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"port", "http: listen on " + taken.Addr().String() + ": listen tcp4 " + taken.Addr().String() + ": bind: address already in use", func(_ *testing.T, cfg *Config) {
			cfg.Listen = taken.Addr().String()
		}},
		{"TLS", "http: TLS needs cert_file and key_file in section [ssl]", func(_ *testing.T, cfg *Config) {
			cfg.Environ = append(cfg.Environ, "DIVAN_SSL__ENABLE=true")
		}},
		{"no administrator", "http: no server administrator is set, so the node listens on this machine only, not on 0.0.0.0:0; " +
			"set one with --admin NAME:PASSWORD, with COUCHDB_USER and COUCHDB_PASSWORD, or in section [admins] of an ini file", func(_ *testing.T, cfg *Config) {
			cfg.Listen, cfg.Environ = ":0", nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := onDisk(t.TempDir())
			tc.spoil(t, &cfg)
			for range 2 { // the second time shows that everything was given back
				err := build(t, cfg).node.Run(context.Background())
				want := strings.ReplaceAll(tc.want, "DIR", cfg.DataDir)
				if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %q, want %q", err, want)
				}
			}
		})
	}
}

// TestRunCancelled ends the context of Run at some moment of the start.
func TestRunCancelled(t *testing.T) {
	for after := time.Duration(0); after < 60*time.Millisecond; after += 6 * time.Millisecond {
		h := build(t, inMemory(t))
		ctx, cancel := context.WithTimeout(context.Background(), after)
		if err := h.node.Run(ctx); err != nil {
			t.Errorf("after %v: %v", after, err)
		}
		cancel()
	}
}

// TestPlainAdmins gives the same administrator again: the hash stays, so that
// sessions do.
func TestPlainAdmins(t *testing.T) {
	dir := t.TempDir()
	h := start(t, onDisk(dir))
	first := h.ask("GET", "/_node/_local/_config/admins/adm", "")
	h.end()
	again := start(t, onDisk(dir))
	if got := again.ask("GET", "/_node/_local/_config/admins/adm", ""); got != first || !strings.HasPrefix(got, `200 "-pbkdf2:`) {
		t.Errorf("the hash was %s, is %s", first, got)
	}
	again.end()
}

// TestRestart restarts the node while feeds are open.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	h := start(t, onDisk(dir))
	h.want("PUT", "/pond", "", "201")
	feed := h.feed("/pond/_changes?feed=continuous&heartbeat=60000")
	h.want("POST", "/_node/_local/_restart", "", `200 {"ok":true}`)
	if last := feed.last(); !strings.HasPrefix(last, `{"last_seq":"`) {
		t.Errorf("the feed ends with %q", last)
	}
	if err := h.wait(); !errors.Is(err, ErrRestart) {
		t.Errorf("Run: %v", err)
	}
	again := start(t, onDisk(dir))
	again.want("GET", "/pond", "", "200")
	again.end()
}

// feed is a changes feed that is open.
type feed struct {
	t     *testing.T
	lines *bufio.Scanner
	body  io.Closer
}

func (h *testNode) feed(path string) *feed {
	h.t.Helper()
	res, err := h.client.Do(h.request(http.MethodGet, h.url(path), ""))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = res.Body.Close() })
	return &feed{h.t, bufio.NewScanner(res.Body), res.Body}
}

// last reads the feed to its end and returns the last line that is not empty.
func (f *feed) last() string {
	f.t.Helper()
	last := ""
	for f.lines.Scan() {
		if line := strings.TrimSpace(f.lines.Text()); line != "" {
			last = line
		}
	}
	if err := f.lines.Err(); err != nil {
		f.t.Errorf("the feed breaks off: %v", err)
	}
	return last
}

// TestStop stops the node with feeds open and an upload under way: the feeds
// end with their last sequence, the upload is finished.
func TestStop(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("PUT", "/pond", "", "201")
	h.want("PUT", "/pond/frog", "{}", "201")
	continuous := h.feed("/pond/_changes?feed=continuous&heartbeat=60000")
	longpoll := h.feed("/pond/_changes?feed=longpoll&since=now&heartbeat=60000")
	events := h.feed("/pond/_changes?feed=eventsource&since=now&heartbeat=60000")
	upload := h.begin("PUT /pond/toad", `{"legs": 4}`)
	h.cancel()
	if last := continuous.last(); !strings.HasPrefix(last, `{"last_seq":"`) {
		t.Errorf("the continuous feed ends with %q", last)
	}
	if last := longpoll.last(); !strings.HasPrefix(last, `"last_seq":"`) {
		t.Errorf("the longpoll feed ends with %q", last)
	}
	events.last()
	eventually(t, "nobody is let in any more", func() bool {
		c, err := net.Dial("tcp", h.node.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	if got := upload.finish(); !strings.HasPrefix(got, "HTTP/1.1 201 Created") {
		t.Errorf("the upload under way: %s", got)
	}
	h.end()
}

// upload is a request whose handler waits for the body.
type upload struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	body string
}

// begin sends the header of a request and returns when it is being handled.
func (h *testNode) begin(line, body string) *upload {
	h.t.Helper()
	c, err := net.Dial("tcp", h.node.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtOnBhc3M=\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n", line, len(body))
	if err != nil {
		h.t.Fatal(err)
	}
	u := &upload{h.t, c, bufio.NewReader(c), body}
	if got := u.line(); got != "HTTP/1.1 100 Continue" {
		h.t.Fatalf("got %q", got)
	}
	u.line()
	return u
}

func (u *upload) line() string {
	u.t.Helper()
	line, err := u.in.ReadString('\n')
	if err != nil {
		u.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// finish sends the body and returns the status line.
func (u *upload) finish() string {
	u.t.Helper()
	if _, err := io.WriteString(u.conn, u.body); err != nil {
		u.t.Fatal(err)
	}
	return u.line()
}

// TestStopCutsOff has a client that never finishes its request.
func TestStopCutsOff(t *testing.T) {
	h := build(t, inMemory(t))
	h.node.listeners.patience = 50 * time.Millisecond
	h.run()
	h.want("PUT", "/pond", "", "201")
	h.begin("PUT /pond/toad", "{}")
	h.end()
	if !h.logged(0, "cut off") {
		t.Error("that a request was cut off is not in the log")
	}
}

// TestMaxDBsOpen hands a number from the configuration down.
func TestMaxDBsOpen(t *testing.T) {
	cfg := inMemory(t, "DIVAN_COUCHDB__MAX_DBS_OPEN=3")
	h := start(t, cfg)
	for i := range 10 {
		h.want("PUT", fmt.Sprintf("/pond%d?q=1", i), "", "201")
		h.want("PUT", fmt.Sprintf("/pond%d/frog", i), `{"croak":"`+strings.Repeat("x", 20000)+`"}`, "201") // no small store
	}
	if n := h.node.engine.Stats().OpenStores; n > 8 { // those in use come on top
		t.Errorf("%d stores are open", n)
	}
	h.end()
	if _, err := cfg.FS.(*vfs.MemFS).Stat("data/shards"); err != nil {
		t.Error(err)
	}
}

// Functions make code of text once the setting says so, and no longer when it says no.
func TestEvalIsSet(t *testing.T) {
	h := start(t, inMemory(t))
	h.want("PUT", "/pond", "", "201")
	h.want("PUT", "/pond/_design/d", `{"shows":{"s":"function () { try { return eval('\"made\"'); } catch (e) { return e.name; } }"}}`, "201")
	h.want("GET", "/pond/_design/d/_show/s", "", "200 TypeError")
	h.set("query_server_config", "allow_eval", "true")
	h.want("GET", "/pond/_design/d/_show/s", "", "200 made")
	h.set("query_server_config", "allow_eval", "false")
	h.want("GET", "/pond/_design/d/_show/s", "", "200 TypeError")
	h.end()
}
