package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestCluster makes a cluster of three processes as the README does, kills the
// one that began it in the moment it is ready, and has it come back.
func TestCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodes := make([]*process, 3)
	urls := make([]string, 3)
	begin := func(i int, listen string) {
		peers := freePort(t)
		environ := append(adminEnviron(), fmt.Sprintf("NODENAME=node%d@127.0.0.1", i+1), "DIVAN_COUCHDB__SINGLE_NODE=false",
			"DIVAN_CLUSTER__BIND_ADDRESS=127.0.0.1", fmt.Sprintf("DIVAN_CLUSTER__PORT=%d", peers),
			fmt.Sprintf("DIVAN_CLUSTER__ADVERTISE=127.0.0.1:%d", peers))
		nodes[i] = launch(t, environ, "serve", "--data", filepath.Join(dir, fmt.Sprint(i)), "--listen", listen)
		nodes[i].awaitReady()
		urls[i] = "http://" + nodes[i].address
	}
	for i := range nodes {
		begin(i, fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	}
	setUp := append([]string{"setup", "--admin", "adm:pass"}, urls...)
	for _, want := range []string{"node3@127.0.0.1 is in\n", "the cluster of 3 nodes is ready\n"} { // the second time nothing is left to do
		status, out := run(t, nil, setUp...)
		if status != 0 || !strings.Contains(out, want) {
			t.Fatalf("setup: exit status %d, %s", status, out)
		}
	}
	named := append([]string{"setup", strings.Replace(urls[0], "//", "//adm:pass@", 1)}, urls[1:]...)
	if status, out := run(t, nil, named...); status != 0 {
		t.Errorf("setup with the administrator in the URL: exit status %d, %s", status, out)
	}
	if status, out := run(t, nil, "setup", "--admin", "adm:wrong", urls[0]); status != 1 || !strings.Contains(out, "does not take the administrator's name and password") {
		t.Errorf("setup with a wrong password: exit status %d, %s", status, out)
	}
	ask := func(i int) *client { return newClient(t, nodes[i].address) }
	ask(0).want(t, "PUT", "/pond", "", 201)
	ask(1).want(t, "PUT", "/pond/frog", `{"legs": 4}`, 201)
	ask(2).want(t, "GET", "/pond/frog", "", 200)

	nodes[0].kill()
	<-nodes[0].ended
	eventually(t, "the others go on", func() bool {
		status, _, err := ask(1).do("PUT", "/pond/toad", "application/json", []byte("{}"))
		return err == nil && (status == 201 || status == 202 || status == 409)
	})
	eventually(t, "the others agree on a database", func() bool {
		status, _, err := ask(2).do("PUT", "/lake", "application/json", nil)
		return err == nil && (status == 201 || status == 202 || status == 412)
	})
	begin(0, nodes[0].address) // the others find it on its new port
	eventually(t, "it has what it missed", func() bool {
		status, _, err := ask(0).do("GET", "/pond/toad?r=1", "", nil)
		return err == nil && status == 200
	})
	for _, p := range nodes {
		p.stop()
	}
	for i := range nodes {
		checkDirectory(t, filepath.Join(dir, fmt.Sprint(i)))
	}
}
