package browser

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"divan/cmd/divan/node"
	"divan/httpapi/apitest"
)

// newCluster is nodes of this process that are one cluster.
func newCluster(t *testing.T, names ...string) []*server {
	t.Helper()
	browserProgram(t)
	var seeds []string
	var all []*server
	for _, name := range names {
		port := freePort(t)
		seeds = append(seeds, fmt.Sprintf("%s@127.0.0.1:%d", name, port))
		all = append(all, &server{t: t, host: "127.0.0.1:0", data: t.TempDir(), member: func(c *node.Config) {
			c.NodeName, c.ClusterAddress = name+"@127.0.0.1", fmt.Sprintf("127.0.0.1:%d", port)
			c.Environ = append(c.Environ, "DIVAN_CLUSTER__SECRET=the secret of the test", "DIVAN_CLUSTER__ZONE=zone-"+name,
				"DIVAN_CLUSTER__SEEDLIST="+strings.Join(seeds, ","))
		}})
	}
	for _, s := range all {
		s.start()
		t.Cleanup(s.stop)
	}
	for _, s := range all {
		s.isUp()
	}
	return all
}

// isUp waits until the node is a member of its cluster.
func (s *server) isUp() {
	s.t.Helper()
	apitest.WaitFor(s.t, func() bool {
		r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+s.host+"/_up", http.NoBody)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		_ = answer.Body.Close() // it is not read
		return answer.StatusCode == http.StatusOK
	})
}

// freePort returns a TCP port that is free now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// Three nodes are seen, one is drained and takes copies again, and one goes away.
func TestCluster(t *testing.T) {
	t.Parallel()
	all := newCluster(t, "one", "two", "three")
	s := all[0]
	c := newScreen(t, s)
	c.open("#/cluster")
	c.logIn("adm", "pass")
	c.says("two@127.0.0.1")
	c.says("three@127.0.0.1")
	const three = "/_node/three@127.0.0.1/_drain" // gets no copy of the database, so that there is something to plan
	s.call("POST", three, "{}", 202)
	s.call("PUT", "/pond?q=4&n=2", "", 201)
	s.call("DELETE", three, "", 200)
	s.call("PUT", "/pond/frog", `{"legs":4}`, 201)
	c.open("#/shards/pond")
	c.until(`document.querySelectorAll("svg").length === 2 && document.querySelectorAll("svg rect").length === 8`)
	c.open("#/cluster")
	c.says("leader")
	c.says("zone-two")
	c.until(`document.querySelector("[aria-label='Drain three@127.0.0.1']") !== null`)
	c.shot("cluster")
	c.accessible()
	c.press("Plan a rebalance …")
	c.says("Start rebalance")
	c.shot("plan")
	c.accessible()
	c.press("Start rebalance")
	c.says("copies moved, ")
	c.says("Rebalance is done")
	c.open("#/shards/pond")
	c.until(`document.querySelectorAll("svg").length === 3 && document.querySelectorAll("svg rect").length === 12`)
	c.shot("shards")
	c.accessible()
	c.open("#/cluster")
	c.until(`document.querySelector("[aria-label='Drain three@127.0.0.1']") !== null`)
	c.exec("drain", `document.querySelector("[aria-label='Drain three@127.0.0.1']").click()`)
	c.until(`/\d+ cop(y|ies) move, /.test(document.querySelector("dialog").innerText)`)
	c.accessible()
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.says("End drain …")
	c.says("three@127.0.0.1 is drained.") // the reason of the rebalance
	c.shot("drained")
	c.press("End drain …")
	c.says("takes copies again")
	c.press("End drain")
	c.until(`document.querySelector("[aria-label='Drain three@127.0.0.1']") !== null`)
	all[1].stop()
	c.says("1 node is away.")
	c.shot("away")
	c.accessible()
}

// A shard is split: the ring has one more, and the job is seen and removed.
func TestShards(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/")
	c.says("_replicator")
	s.call("PUT", "/pond?q=4", "", 201)
	s.call("PUT", "/pond/frog", `{"legs":4}`, 201)
	c.open("#/shards/pond")
	c.says("c0000000-ffffffff")
	c.says("4 shards")
	c.exec("split", `document.querySelector("[aria-label='Split 40000000-7fffffff']").click()`)
	c.says("becomes two of half its size")
	c.accessible()
	c.press("Split")
	c.says("60000000-7fffffff")
	c.says("1/8")
	c.until(`document.querySelectorAll("svg rect").length === 5`)
	c.says("completed")
	c.shot("split")
	c.accessible()
	c.open("#/cluster")
	c.says("Set-up a node of its own")
	c.press("Remove …")
	c.says("Only the record of the job goes.")
	c.press("Remove")
	c.says("No shard is split, merged or moved.")
	s.call("PUT", "/pond/_security", "{}", 200)
	s.account("ada", "secret")
	c.press("Log out")
	c.says("Password")
	c.open("#/shards/pond")
	c.says("60000000-7fffffff")
	c.until(`![...document.querySelectorAll("button")].some((b) => b.innerText === "Split …")`)
}

// A cluster is set up by hand: the first node is made ready, a node is added, the system databases
// are made, and a node is taken out.
func TestSetUp(t *testing.T) {
	t.Parallel()
	browserProgram(t)
	meant := func(name string) *server {
		port := freePort(t)
		s := &server{t: t, host: "127.0.0.1:0", data: t.TempDir(), member: func(c *node.Config) {
			c.NodeName = name + "@127.0.0.1"
			c.Environ = append(c.Environ, "DIVAN_COUCHDB__SINGLE_NODE=false", fmt.Sprintf("DIVAN_CLUSTER__PORT=%d", port))
		}}
		s.start()
		t.Cleanup(s.stop)
		return s
	}
	s, two, three := meant("one"), meant("two"), meant("three")
	c := newScreen(t, s)
	c.open("#/cluster")
	c.logIn("adm", "pass")
	c.says("Set-up not begun")
	c.press("Make it a cluster …")
	c.accessible()
	c.shot("enable")
	c.fill("Number of nodes, this one too", "3")
	c.press("Begin")
	c.says("Cluster setup requires a remote bind_address")
	c.fill("Address to listen on", "0.0.0.0")
	c.press("Begin")
	c.says("Set-up not finished")
	add := func(other *server, password string) {
		t.Helper()
		c.press("Add a node …")
		host, port, _ := net.SplitHostPort(other.host)
		c.fill("Host", host)
		c.fill("Port", port)
		c.fill("Administrator there", "adm")
		c.fill("Its password", password)
		c.press("Add")
	}
	add(two, "wrong")
	c.says("Invalid admin credentials")
	c.accessible()
	c.shot("add")
	c.press("Cancel")
	add(two, "pass")
	c.says("two@127.0.0.1")
	add(three, "pass")
	c.says("three@127.0.0.1")
	c.press("Finish …")
	c.says("members now: 3 nodes.")
	c.press("Finish")
	c.says("Set-up finished")
	if n := s.call("GET", "/_users", "", 200)["cluster"].(map[string]any)["n"]; n != json.Number("3") {
		t.Errorf("_users has %v copies", n)
	}
	c.accessible()
	c.shot("finished")
	three.stop()
	c.says("1 node is away.")
	c.exec("take out", `document.querySelector("[aria-label='Take out three@127.0.0.1']").click()`)
	c.says("A rebalance makes them anew on other nodes")
	c.accessible()
	c.shot("take-out")
	c.fill("Its name, to be sure", "three@127.0.0.1")
	c.until(`!document.querySelector("dialog .danger").disabled`)
	c.exec("confirm", `document.querySelector("dialog .danger").click()`)
	c.until(`document.querySelector("dialog") === null && !document.querySelector("table").innerText.includes("three@127.0.0.1")`)
}

// Figures of all nodes are drawn and told as text, and outlive a reload but not the log-out.
func TestFigures(t *testing.T) {
	t.Parallel()
	all := newCluster(t, "one", "two", "three")
	s := all[0]
	c := newScreen(t, s)
	c.open("#/figures")
	c.logIn("adm", "pass")
	c.says("Newest values")
	c.until(`document.querySelectorAll("thead th").length === 5`) // all nodes
	s.call("PUT", "/pond", "", 201)
	for i := range 20 {
		s.call("PUT", fmt.Sprintf("/pond/doc-%d", i), "{}", 201)
	}
	c.until(`document.querySelectorAll(".uplot canvas").length === 13`)
	c.until(`/Space left on the disk\s+GB(\s+·?\s*[0-9.]*[1-9][0-9.]*){3}/.test(document.body.innerText)`)
	const written = `[...document.querySelectorAll("tbody tr")].find((r) => r.innerText.startsWith("Documents written")).innerText`
	c.until(`/per s\s+[0-9.]*[1-9]/.test(` + written + `)`)
	c.shot("figures")
	c.accessible()
	c.run("reload", chromedp.Reload())
	c.says("Newest values")
	if eval[bool](c, `Object.keys(sessionStorage).length === 0`) {
		t.Error("samples are not kept over a reload")
	}
	all[2].stop()
	c.says("three@127.0.0.1 does not answer.")
	c.shot("away")
	c.accessible()
	c.press("Log out")
	c.says("Password")
	c.until("sessionStorage.length === 0")
}

// A job waits while all are stopped, which is told, as is that it cannot be resumed alone.
func TestReshardJobs(t *testing.T) {
	t.Parallel()
	s, c := newAdminScreen(t, "#/cluster")
	c.says("No shard is split, merged or moved.")
	s.call("PUT", "/_reshard/state", `{"state":"stopped","reason":"by the test"}`, 200)
	s.call("PUT", "/pond?q=1", "", 201)
	c.open("#/shards/pond")
	c.press("Split …")
	c.press("Split")
	c.says("Split")
	c.open("#/cluster")
	c.says("No jobs run on this cluster: by the test")
	c.press("Resume")
	c.until(`document.querySelector(".refusal") !== null`)
	c.shot("stopped")
	c.accessible()
	s.call("PUT", "/_reshard/state", `{"state":"running"}`, 200)
	c.says("completed")
	c.until(`!document.body.innerText.includes("No jobs run")`)
}
