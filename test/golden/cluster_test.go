package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"divan/cmd/divan/node"
	"divan/cmd/divan/setup"
	"divan/storage/pause"
	"divan/storage/storagetest"
)

// patience bounds the waits for a cluster.
const patience = 90 * time.Second

// cluster is three nodes in this process that were set up as one cluster
// through POST /_cluster_setup.
type cluster struct {
	t     *testing.T
	nodes []*clusterNode
}

// clusterNode is one node, which is built anew when it asks for that.
type clusterNode struct {
	name   string
	config node.Config
	url    *url.URL
	cancel context.CancelFunc
	done   chan struct{}
}

// hosts returns addresses of this machine that no other process uses: all of 127.0.0.0/8
// is this machine.
func hosts(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), 1+rand.IntN(250), 1+i))
	}
	return out
}

func startCluster(t *testing.T, settings ...string) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var urls []string
	for i, host := range hosts(3) {
		h := &clusterNode{
			name: fmt.Sprintf("node%d@%s", i+1, host),
			url:  &url.URL{Scheme: "http", Host: host + ":5984", User: url.UserPassword("adm", "pass")},
		}
		h.config = node.Config{
			DataDir: t.TempDir(), Listen: h.url.Host, Version: "test", Logger: logger(t, h.name),
			NodeName: h.name, ClusterAddress: host + ":5986", Environ: append([]string{"DIVAN_COUCHDB__SINGLE_NODE=false", "COUCHDB_USER=adm", "COUCHDB_PASSWORD=pass", shortFeeds, slowFunctions, slowNodes}, settings...),
		}
		c.nodes = append(c.nodes, h)
		urls = append(urls, "http://"+h.url.Host)
		c.run(h)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	for { // a node may not know its administrator yet
		err = setup.Run(ctx, setup.Config{Nodes: urls, User: "adm", Password: "pass", Out: io.Discard})
		if err == nil || !strings.Contains(err.Error(), "does not take") || pause.For(ctx, tryAgain) != nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("set-up: %v", err)
	}
	c.await(3)
	return c
}

// logger writes to a file below the directory that GOLDEN_LOGS names.
func logger(t *testing.T, name string) *zap.Logger {
	t.Helper()
	dir := os.Getenv("GOLDEN_LOGS")
	if dir == "" {
		return storagetest.FailOnPanics(t)
	}
	conf := zap.NewDevelopmentConfig()
	conf.OutputPaths = []string{filepath.Join(dir, strings.NewReplacer("/", "_", "=", "_").Replace(t.Name())+"."+name+".log")}
	log, err := conf.Build()
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// run runs a node until the end of the test, or until it is stopped.
func (c *cluster) run(h *clusterNode) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.done = cancel, make(chan struct{})
	n, err := node.New(ctx, h.config)
	if err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(h.done)
		for err = n.Run(ctx); errors.Is(err, node.ErrRestart); err = n.Run(ctx) {
			if n, err = node.New(ctx, h.config); err != nil {
				break
			}
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			c.t.Errorf("%s ended with: %v", h.name, err)
		}
	}()
	c.t.Cleanup(func() { c.stop(h) })
}

// stop ends a node gracefully.
func (c *cluster) stop(h *clusterNode) {
	h.cancel()
	<-h.done
}

// await waits until the first node sees n nodes.
func (c *cluster) await(n int) {
	c.t.Helper()
	var members struct {
		All []string `json:"all_nodes"`
	}
	c.until("/_membership", &members, func() bool { return len(members.All) == n })
}

// until asks the first node until the answer is as wanted.
func (c *cluster) until(path string, out any, ok func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := c.do(http.MethodGet, path, out)
		if err == nil && ok() {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s says %v: %v", path, out, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// do sends a request through the first node.
func (c *cluster) do(method, path string, out any) error {
	base := c.nodes[0].url
	req, err := http.NewRequestWithContext(c.t.Context(), method, base.String()+path, nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read as far as it matters
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s", method, path, res.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}

var stopped = regexp.MustCompile(`^# needs: nodes? (\d(?: and \d)*) stopped`)

// stoppedNodes returns the numbers of the nodes that are to be stopped for a
// transcript.
func stoppedNodes(text string) []string {
	m := stopped.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	return strings.Split(m[1], " and ")
}

// changesSettings reports whether a transcript changes what holds for the whole
// node, or sees what others do there.
func changesSettings(text string) bool {
	for _, path := range []string{"/_config/", "/_cluster_setup", "/_db_updates"} {
		if strings.Contains(text, path) {
			return true
		}
	}
	return false
}

// slowNodes lets three nodes in one process be silent for longer than usual: other tests
// may have the processors.
const slowNodes = "DIVAN_CLUSTER__NODE_DOWN_AFTER=5000"

// slowFunctions lets functions of design documents take a minute, and wait as long for their
// turn: under the race detector, on a machine with other work, five seconds are little.
const slowFunctions = "DIVAN_COUCHDB__OS_PROCESS_TIMEOUT=60000"

// shortFeeds bounds how long a feed waits: _db_updates takes its timeout for
// seconds (api.md section 20, row 5), the transcripts give milliseconds.
const shortFeeds = "DIVAN_CHTTPD__CHANGES_TIMEOUT=5000"

// clusters gives clusters to transcripts: all share one, but for those that
// change settings or stop nodes.
type clusters struct {
	shared *cluster
	guests chan struct{} // of the shared one
	more   chan struct{} // further ones that run
}

// How many transcripts use the shared cluster at a time, and how many others
// have one of their own: three nodes each.
const (
	maxGuests   = 12
	maxClusters = 6
)

func newClusters(t *testing.T) *clusters {
	t.Helper()
	return &clusters{shared: startCluster(t, fastHashes), guests: make(chan struct{}, maxGuests), more: make(chan struct{}, maxClusters)}
}

// get returns a cluster for a transcript; done is called after it.
func (c *clusters) get(t *testing.T, text string) (_ *cluster, done func()) {
	t.Helper()
	ofDefaults := strings.Contains(text, defaultIterations)
	if stoppedNodes(text) == nil && !changesSettings(text) && !ofDefaults {
		c.guests <- struct{}{}
		return c.shared, func() { <-c.guests }
	}
	c.more <- struct{}{}
	t.Cleanup(func() { <-c.more }) // after its nodes have stopped
	if ofDefaults {
		return startCluster(t), func() {}
	}
	return startCluster(t, fastHashes), func() {}
}

// lose stops nodes. When no majority is left, which then could make no
// database, the first one of the transcript is made before.
func (c *cluster) lose(down []string, db string) error {
	if len(down) > 1 {
		if err := c.do(http.MethodPut, "/"+db+"?q=1", nil); err != nil {
			return err
		}
	}
	for _, n := range down {
		c.stop(c.nodes[n[0]-'1'])
	}
	c.await(3 - len(down))
	return nil
}

// ofClusters are the transcripts of a cluster: they need more than one node.
func ofClusters(key string) bool { return strings.HasPrefix(key, "cluster/") }

// ofResharding are transcripts of splitting shards; they stop all jobs, and were recorded on
// one node: on three there are as many jobs, and shards, as there are copies.
func ofResharding(key string) bool { return strings.HasPrefix(key, "reshard/") }

// ofSearch are transcripts of full-text search.
func ofSearch(key string) bool {
	kind, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"search", "nouveau", "mango-text"}, kind)
}

// ofOneNode are transcripts that are about a node that stands alone.
func ofOneNode(key string) bool {
	return ofResharding(key) || slices.Contains([]string{"server/12-cluster-setup.http"}, key)
}

func TestStoppedNodes(t *testing.T) {
	for text, want := range map[string]string{
		"# needs: node 3 stopped\n":                         "3",
		"# needs: nodes 2 and 3 stopped\n":                  "2 3",
		"# needs: CouchDB must be started with x=y\nWords.": "",
		"Words.\n# needs: node 3 stopped":                   "",
	} {
		if got := strings.Join(stoppedNodes(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
