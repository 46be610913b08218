package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

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
		id := a.node.links.members.id.load()
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

// A node in maintenance mode: the others do without its copies, a balancer does
// without the node, and requests that arrive are served.
func TestMaintenance(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		c.want("PUT", "/_node/_local/_config/couchdb/maintenance_mode", `"true"`, "200")
		c.want("GET", "/_up", "", "404")
		c.want("PUT", "/pond/frog", "{}", "201")
		c.want("GET", "/pond/frog", "", "200")
		for i := range 10 {
			a.want("PUT", fmt.Sprintf("/pond/toad%d", i), "{}", "201")
		}
		b.want("PUT", "/_node/"+c.name+"/_config/couchdb/maintenance_mode", `"nolb"`, "200")
		c.want("GET", "/_up", "", "404")
		b.want("PUT", "/_node/"+c.name+"/_config/couchdb/maintenance_mode", `"false"`, "200")
		c.want("GET", "/_up", "", "200")
		w.eventually("its copies have caught up", func() bool {
			_, docs := c.docs("pond")
			return docs == 11
		})
	})
}

// What a node that is away lacks is in the figures of the others.
func TestLagIsTold(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		c.kill()
		for i := range 10 {
			a.soon("PUT", fmt.Sprintf("/pond/toad%d", i), "{}", "201")
		}
		metric := func(name string) string {
			for line := range strings.Lines(a.ask("GET", "/_node/_local/_prometheus", "")) {
				if strings.HasPrefix(line, name+" ") {
					return strings.TrimSpace(strings.TrimPrefix(line, name))
				}
			}
			return ""
		}
		w.eventually("the lag is told", func() bool { return metric("couchdb_internal_replication_lag") >= "1" })
		c.start()
		w.eventually("the lag is gone", func() bool { return metric("couchdb_internal_replication_lag") == "0" })
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
		w.eventually("the others know", func() bool { return !slices.Contains(clusterView{links: a.node.links}.Members(), c.name) })
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

// A node whose cluster port moves, and one that has another address altogether,
// are found again.
func TestNodeMoves(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		b.end()
		c.end()
		b.cfg.Environ = append(b.cfg.Environ, "DIVAN_CLUSTER__PORT=7000")
		c.i = 33
		c.cfg.Environ = append(c.cfg.Environ, "DIVAN_CLUSTER__ADVERTISE=10.0.0.33:5986")
		w.start(b, c)
		for n, address := range map[*home]string{b: "10.0.0.2:7000", c: "10.0.0.33:5986"} {
			w.eventually("the new address is known", func() bool {
				m, _ := a.node.meta.Node(n.name)
				return m.RPC == address
			})
			n.soon("GET", "/_up", "", "200")
			n.soon("GET", "/pond", "", "200")
		}
		for i := range 10 {
			c.want("PUT", fmt.Sprintf("/pond/frog%d", i), "{}", "201")
		}
		for _, h := range w.homes {
			w.eventually("each has everything", func() bool {
				_, docs := h.docs("pond")
				return docs == 10
			})
		}
	})
}

// A node of a cluster that was built and never run gives its port back.
func TestCloseGivesClusterPortBack(t *testing.T) {
	inTown(t, func(w *town) {
		h := w.build(1, "DIVAN_COUCHDB__SINGLE_NODE=false")
		host, err := w.net.Boot("10.0.0.1")
		if err != nil {
			w.t.Fatal(err)
		}
		h.cfg.Network, h.cfg.Logger = host, zap.NewNop()
		for range 2 {
			n, err := New(w.t.Context(), h.cfg)
			if err != nil {
				w.t.Fatal(err)
			}
			if err := n.Close(); err != nil {
				w.t.Error(err)
			}
		}
		delete(w.homes, h.i)
	})
}

// The start of a node of a cluster is ended at some moment.
func TestStartIsCancelled(t *testing.T) {
	inTown(t, func(w *town) {
		a := w.build(1, seedList, secret0)
		b := w.build(2, seedList, secret0)
		w.start(a)
		for after := time.Duration(0); after < 3*time.Second; after += 130 * time.Millisecond {
			b.start()
			<-time.After(after)
			b.end()
		}
	})
}

// A node that dies right after it has accepted an invitation goes on joining, also when its
// own metadata have told it news meanwhile. Its settings are made again.
func TestKilledAfterInvitation(t *testing.T) {
	inTown(t, func(w *town) {
		open := "DIVAN_COUCHDB__SINGLE_NODE=false"
		a, b := w.build(1, open), w.build(2, open)
		w.start(a, b)
		for _, h := range w.homes {
			h.soon("GET", "/_up", "", "200")
		}
		b.want("PUT", "/_node/_local/_config/log/level", `"warning"`, "200")
		before := b.node.meta.UUID()
		if _, err := b.node.links.invitations.Accept(w.t.Context(), a.node.links.invitations.Invitation()); err != nil {
			w.t.Fatal(err)
		}
		if err := b.node.meta.SetDraining(w.t.Context(), b.name, true); err != nil {
			w.t.Fatal(err)
		}
		synctest.Wait()
		b.kill()
		b.start()
		w.eventually("it has joined", func() bool { return b.node.links.members.joined() && len(a.node.meta.Nodes()) == 2 })
		if uuid := b.node.meta.UUID(); uuid == before || uuid != a.node.meta.UUID() {
			w.t.Errorf("uuid %s", uuid)
		}
		w.eventually("that is noted", func() bool { return !b.node.links.members.id.load().Invited })
		w.eventually("its settings are there again", func() bool {
			return b.ask("GET", "/_node/_local/_config/log/level", "") == `200 "warning"`
		})
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
		a, b, c := w.build(1, open), w.build(2, open), w.build(3, open, "COUCHDB_ERLANG_COOKIE=another-secret-than-theirs")
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
		stranger := w.build(3, list, "COUCHDB_ERLANG_COOKIE=another-secret-than-theirs")
		w.start(a, b, stranger)
		a.soon("GET", "/_up", "", "200")
		b.soon("GET", "/_up", "", "200")
		<-time.After(20 * time.Second)
		stranger.want("GET", "/_up", "", "404")
		if got := len(a.node.meta.Nodes()); got != 2 {
			w.t.Errorf("%d nodes", got)
		}
		if got := (clusterView{links: a.node.links}).Members(); slices.Contains(got, stranger.name) {
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

// Fifty nodes: each is heard of by each, and answers from a database that one
// of them has made.
func TestFiftyNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	inTown(t, func(w *town) {
		const count = 50
		for i := 1; i <= count; i++ {
			w.start(w.build(i, "DIVAN_CLUSTER__SEEDLIST=divan@10.0.0.1,divan@10.0.0.2,divan@10.0.0.3", secret0))
		}
		took := w.eventually("all nodes belong", func() bool {
			for _, h := range w.homes {
				if !h.node.links.members.joined() || len(h.node.meta.Nodes()) != count {
					return false
				}
			}
			return true
		})
		w.t.Logf("all belong after %v", took)
		took = w.eventually("all have heard of all", func() bool {
			for _, h := range w.homes {
				if len(clusterView{links: h.node.links}.Members()) != count {
					return false
				}
			}
			return true
		})
		w.t.Logf("all have heard of all after %v more", took)
		w.homes[7].soon("PUT", "/pond", "", "201")
		w.homes[33].want("PUT", "/pond/frog", `{"legs":4}`, "201")
		for _, h := range w.homes {
			h.want("GET", "/pond/frog", "", `200 {"_id":"frog"`)
		}
		w.eventually("five vote", func() bool { return len(w.homes[1].node.meta.Voters()) == 5 })
	})
}

// A node that is gone for good is replaced by a new one, which gets its copies.
func TestNodeIsReplaced(t *testing.T) {
	inTown(t, func(w *town) {
		a, b, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		for i := range 20 {
			b.want("PUT", fmt.Sprintf("/pond/frog%d", i), `{"legs":4}`, "201")
		}
		c.kill()
		delete(w.homes, 3)
		d := w.build(4, "DIVAN_COUCHDB__SINGLE_NODE=false", secret0)
		w.start(d)
		d.soon("GET", "/_up", "", "200")
		a.want("PUT", "/_node/_local/_nodes/"+d.name, `{"replaces":"`+c.name+`"}`, "201")
		took := w.eventually("it has its copies", func() bool {
			copies, docs := d.docs("pond")
			return copies == 2 && docs == 20
		})
		w.t.Logf("filled after %v", took)
		names := `["divan@10.0.0.1","divan@10.0.0.2","divan@10.0.0.4"]`
		a.soon("GET", "/_membership", "", `200 {"all_nodes":`+names+`,"cluster_nodes":`+names)
		d.want("PUT", "/pond/toad", "{}", "201")
		w.eventually("votes are with those that are left", func() bool { return len(a.node.meta.Voters()) == 3 })
		b.kill()
		a.soon("PUT", "/pond/newt", "{}", "201")
		a.soon("PUT", "/lake", "", "201")
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

// With a limit of one revision, updates, a deletion, a new beginning and a replicated edit
// make no branch on any copy.
func TestShortHistories(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, _ := w.seeded()
		a.want("PUT", "/pond", "", "201")
		a.want("PUT", "/pond/_revs_limit", "1", "200")
		rev := ""
		write := func(method, body string) {
			query := "?new_edits=" + strconv.FormatBool(!strings.Contains(body, "_rev"))
			if rev != "" {
				query += "&rev=" + rev
			}
			answer := a.ask(method, "/pond/frog"+query, body)
			_, text, _ := strings.Cut(answer, `"rev":"`)
			if rev, _, _ = strings.Cut(text, `"`); rev == "" {
				w.t.Fatal(method, answer)
			}
			for _, h := range w.homes {
				want := `"changes":[{"rev":"` + rev + `"}]`
				w.eventually("each copy has one leaf", func() bool {
					return strings.Contains(h.ask("GET", "/pond/_changes?style=all_docs", ""), want)
				})
			}
		}
		for n := range 5 {
			write("PUT", fmt.Sprintf(`{"legs":%d}`, n))
		}
		write("DELETE", "")
		rev = ""
		write("PUT", `{"legs":4}`)
		_, id, _ := strings.Cut(rev, "-")
		rev = ""
		write("PUT", `{"_rev":"9-b","_revisions":{"start":9,"ids":["b","a","`+id+`"]},"legs":5}`)
	})
}
