package node

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// leave takes a node out of the cluster through this one.
func (h *home) leave(name string) {
	h.town.t.Helper()
	var doc struct {
		Rev string `json:"_rev"`
	}
	text := h.ask("GET", "/_node/_local/_nodes/"+name, "")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), &doc); err != nil {
		h.town.t.Fatalf("%s: %v", text, err)
	}
	h.soon("DELETE", "/_node/_local/_nodes/"+name+"?rev="+doc.Rev, "", "200")
}

// A node that was taken out of the cluster and runs on refuses every request about the
// cluster, and can still be looked at.
func TestRemovedNodeRefuses(t *testing.T) {
	inTown(t, func(w *town) {
		a, _, c := w.seeded()
		a.want("PUT", "/pond", "", "201")
		c.want("PUT", "/pond/frog", "{}", "201")
		feed := make(chan string)
		go func() {
			feed <- c.ask("GET", "/pond/_changes?feed=continuous&heartbeat=5000", "")
		}()
		<-time.After(time.Second)
		a.leave(c.name)
		const reason = `"reason":"This node was removed from its cluster."}`
		took := c.soon("GET", "/_up", "", `404 {"status":"removed",`+reason)
		w.t.Logf("it knows after %v", took)
		a.want("DELETE", "/pond", "", "200")
		const refusal = `503 {"error":"service unavailable",` + reason
		for _, r := range [][3]string{
			{"PUT", "/pond/toad", "{}"},
			{"GET", "/pond/frog", ""},
			{"GET", "/pond", ""},
			{"PUT", "/lake", ""},
			{"GET", "/lake/_security", ""},
			{"GET", "/_all_dbs", ""},
			{"GET", "/_users/org.couchdb.user:ann", ""},
			{"GET", "/_session", ""},
			{"POST", "/_session", `{"name":"adm","password":"pass"}`},
			{"GET", "/_membership", ""},
			{"POST", "/_cluster_setup", `{"action":"finish_cluster"}`},
			{"GET", "/_node/_local/_config", ""},
			{"PUT", "/_node/_local/_config/admins/eve", `"evil"`},
			{"GET", "/_node/_local/_nodes/_all_docs", ""},
			{"GET", "/_node/" + a.name + "/_stats", ""},
			{"GET", "/_nothing", ""},
		} {
			c.want(r[0], r[1], r[2], refusal)
		}
		for _, path := range []string{
			"/", "/_node/_local", "/_node/_local/_system", "/_node/_local/_stats", "/_node/" + c.name + "/_prometheus", "/_node/_local/_versions",
		} {
			c.want("GET", path, "", "200")
		}
		select {
		case got := <-feed:
			if !strings.Contains(got, `"last_seq"`) {
				w.t.Errorf("the feed ended with %s", got)
			}
		case <-time.After(time.Minute):
			w.t.Error("a feed goes on")
		}
		a.want("GET", "/_up", "", "200")
	})
}

// parted makes a database with two copies on four nodes and returns the nodes
// that hold one, and those that do not.
func (w *town) parted(db string) (holders, rest []*home) {
	w.t.Helper()
	w.seeded()
	w.start(w.build(4, seedList, secret0))
	w.homes[4].soon("GET", "/_up", "", `200 {"status":"ok"`)
	w.homes[1].want("PUT", "/"+db+"?q=1&n=2", "", "201")
	m, _ := w.homes[1].node.meta.Database(db)
	for i := 1; i <= 4; i++ {
		h := w.homes[i]
		if slices.Contains(m.Shards[0].Nodes(), h.name) {
			holders = append(holders, h)
		} else {
			rest = append(rest, h)
		}
	}
	return holders, rest
}

// A feed that reads a copy of a node that was replaced, and runs on, goes on
// from another copy: nothing is written to that one any more.
func TestFeedLeavesRemovedNode(t *testing.T) {
	inTown(t, func(w *town) {
		holders, rest := w.parted("pond")
		old, other, reader, by := holders[0], holders[1], rest[0], rest[1]
		other.kill()
		<-time.After(5 * time.Second)
		feed := make(chan string, 1)
		go func() {
			feed <- reader.ask("GET", "/pond/_changes?feed=longpoll&since=now&heartbeat=5000", "")
		}()
		<-time.After(time.Second)
		other.start()
		other.soon("GET", "/_up", "", `200 {"status":"ok"`)
		reader.soon("PUT", "/_node/_local/_nodes/"+by.name, `{"replaces":"`+old.name+`"}`, "201")
		old.soon("GET", "/_up", "", `404 {"status":"removed"`)
		reader.soon("PUT", "/pond/frog", "{}", "201")
		if got := <-feed; !strings.Contains(got, `"id":"frog"`) {
			w.t.Errorf("the feed: %s", got)
		}
	})
}

// Both nodes that hold a database are replaced, the second one as soon as the
// new copy of the first one is filled, and not before.
func TestReplaceAllHolders(t *testing.T) {
	inTown(t, func(w *town) {
		holders, rest := w.parted("pond")
		rest[0].want("PUT", "/pond/frog", "{}", "201")
		place := func(old, by *home) (path, body string) {
			return "/_node/_local/_nodes/" + by.name, `{"replaces":"` + old.name + `"}`
		}
		path, body := place(holders[0], rest[0])
		rest[1].want("PUT", path, body, "201")
		path, body = place(holders[1], rest[1])
		early := rest[1].ask("PUT", path, body)
		refused := strings.HasPrefix(early, `409 {"error":"conflict","reason":"`+holders[1].name+` has the only full copy`)
		if !refused && !strings.HasPrefix(early, "201 ") { // the new copy may be filled by now
			w.t.Errorf("at once: %s", early)
		}
		if refused {
			w.t.Logf("filled after %v", rest[1].soon("PUT", path, body, "201"))
		}
		rest[0].soon("GET", "/pond/frog", "", "200")
		rest[1].soon("GET", "/pond/frog", "", "200")
	})
}
