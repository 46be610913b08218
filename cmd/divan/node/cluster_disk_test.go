package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"divan/cluster/wire/simnet"
	"divan/cmd/divan/porttest"
)

// freePort returns a port for a node that is started again.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := porttest.Free(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// afterGossip waits until the goroutines are gone that memberlist does not wait
// for itself.
func afterGossip(t *testing.T) {
	t.Helper()
	buf := make([]byte, 8<<20)
	eventually(t, "gossip has ended", func() bool {
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "hashicorp/memberlist")
	})
}

// Three nodes with real sockets, real files, TLS and names that have to be
// looked up, stopped and started again.
func TestOnDiskAndLoopback(t *testing.T) {
	defer afterGossip(t)
	ca := newAuthority(t)
	ca.issue("node")
	var ports []int
	var seeds, dirs []string
	for i := range 3 {
		ports = append(ports, freePort(t))
		seeds = append(seeds, fmt.Sprintf("n%d@localhost:%d", i, ports[i]))
		dirs = append(dirs, t.TempDir())
	}
	startAll := func() []*testNode {
		var all []*testNode
		for i := range 3 {
			cfg := onDisk(dirs[i], "COUCHDB_ERLANG_COOKIE=monsters-of-the-deep", "DIVAN_CLUSTER__SEEDLIST="+strings.Join(seeds, ","),
				"DIVAN_CLUSTER__TLS_CERT_FILE="+ca.file("node.pem"), "DIVAN_CLUSTER__TLS_KEY_FILE="+ca.file("node.key"),
				"DIVAN_CLUSTER__TLS_CA_FILE="+ca.file("ca.pem"))
			cfg.NodeName, cfg.ClusterAddress = fmt.Sprintf("n%d@localhost", i), fmt.Sprintf("127.0.0.1:%d", ports[i])
			all = append(all, start(t, cfg))
		}
		for _, h := range all {
			eventually(t, "the cluster is there", func() bool { return strings.HasPrefix(h.ask("GET", "/_up", ""), "200") })
		}
		return all
	}
	all := startAll()
	all[0].want("PUT", "/pond", "", "201")
	all[1].want("PUT", "/pond/frog", `{"legs":4}`, "201")
	all[2].want("GET", "/pond/frog", "", "200")
	eventually(t, "gossip has found them all", func() bool { return len(clusterView{links: all[2].node.links}.Members()) == 3 })
	uuid := all[0].node.meta.UUID()
	for _, h := range all {
		h.end()
	}
	text, err := os.ReadFile(filepath.Join(dirs[1], IdentityFile))
	if err != nil || !strings.Contains(string(text), uuid) || !strings.Contains(string(text), seeds[2][3:]) {
		t.Errorf("%s %v", text, err)
	}
	ca.issue("node") // anew
	all = startAll()
	for _, h := range all {
		h.want("GET", "/pond/frog", "", "200")
	}
	for _, h := range all {
		h.end()
	}
}

// An invited node restarts with the metadata of its cluster; its own are put
// aside.
func TestInvitationOnDisk(t *testing.T) {
	defer afterGossip(t)
	var all []*testNode
	var cfgs []Config
	for i := range 2 {
		cfg := onDisk(t.TempDir(), "DIVAN_COUCHDB__SINGLE_NODE=false")
		cfg.NodeName, cfg.ClusterAddress = fmt.Sprintf("n%d@127.0.0.1", i), fmt.Sprintf("127.0.0.1:%d", freePort(t))
		cfgs = append(cfgs, cfg)
		all = append(all, start(t, cfg))
	}
	a, b := all[0], all[1]
	a.want("PUT", "/pond?n=1", "", "201")
	b.want("PUT", "/_node/_local/_config/log/level", `"warning"`, "200")
	if _, err := b.node.links.invitations.Accept(t.Context(), a.node.links.invitations.Invitation()); err != nil {
		t.Fatal(err)
	}
	b.node.Restart()
	if err := b.wait(); !errors.Is(err, ErrRestart) {
		t.Fatalf("Run: %v", err)
	}
	b = start(t, cfgs[1])
	eventually(t, "the node is a member", func() bool { return len(a.node.meta.Nodes()) == 2 && b.node.links.members.joined() })
	b.want("GET", "/_all_dbs", "", `200 ["pond"]`)
	eventually(t, "its settings are there again", func() bool {
		return b.ask("GET", "/_node/_local/_config/log/level", "") == `200 "warning"`
	})
	if _, err := os.Stat(filepath.Join(cfgs[1].DataDir, "meta.before")); err != nil {
		t.Error(err)
	}
	// Again: it is in already.
	if _, err := b.node.links.invitations.Accept(t.Context(), a.node.links.invitations.Invitation()); err != nil || b.node.links.members.id.load().Invited {
		t.Errorf("invited again: %v", err)
	}
	for _, h := range []*testNode{b, a} {
		h.end()
	}

	// It belongs to the cluster, no matter which settings it is started with.
	cfg := cfgs[1]
	cfg.Environ, cfg.ClusterAddress = settings("DIVAN_COUCHDB__SINGLE_NODE=true"), ""
	const want = "[couchdb] single_node is true, and the node belongs to a cluster with n0@127.0.0.1"
	if _, err := New(t.Context(), cfg); err == nil || err.Error() != want {
		t.Errorf("a member that is to stand alone: %v", err)
	}
	cfg.Environ = settings()
	host, err := simnet.New(1).Boot("10.0.0.1") // the usual port of this machine may be in use
	if err != nil {
		t.Fatal(err)
	}
	cfg.Network = host
	n, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n.links == nil {
		t.Error("a member stands alone")
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
